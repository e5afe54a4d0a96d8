# SPDX-License-Identifier: Apache-2.0
"""Conversations as prompts: the last answer is scored, and each message before it is a span of the context. The file is
that of kveval --transcripts."""

import json

from .._error import Error, first_line, require
from ..files.access import read_text
from ..files.schema import Span

ROLES = "system", "developer", "user", "tool", "function", "assistant"  # as in lib/kvbench/eval/transcripts.cpp


def read_transcripts(path):
    """[(place, messages)] by line. A message has `role`, `content` (text, or a list of token ids), perhaps `span`."""
    found = [(f"{path}:{number}", line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
    require(found, path, "there is no conversation in it.")
    return [(where, _messages(where, line)) for where, line in found]


def _messages(where, line):
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as failure:
        raise Error(f"{where}: it is no JSON ({first_line(failure)}); give one conversation per line.") from None
    messages = parsed.get("messages") if isinstance(parsed, dict) else parsed
    require(isinstance(messages, list) and all(isinstance(one, dict) for one in messages), where,
            'it has no list "messages", such as [{"role": "user", "content": "Hello"}, ...].')
    for number, one in enumerate(messages, 1):
        content, names = one.get("content"), (one.get("role"), one.get("span", ""))
        ids = isinstance(content, list) and all(type(id) is int for id in content)
        require(all(isinstance(name, str) for name in names) and content and (ids or isinstance(content, str)),
                f"{where}, message {number}", "give a \"role\" that is a text, and a \"content\" that is a text or a "
                "list of token ids and not empty; \"span\" is a text, too.")
        require(one["role"] in ROLES, f"{where}, message {number}", f"its role is {ascii(one['role'])[:60]}; choose "
                f"among {', '.join(ROLES)}.")
    require(len(messages) > 1 and messages[-1]["role"] == "assistant", where,
            "its last message must be an answer of the assistant, behind at least one other message.")
    return messages


def _surrounded(messages, tokenizer, where):
    """(before, content, after) of each message in the chat template of the tokenizer."""
    found, done = [], ""
    for number, one in enumerate(messages, 1):
        here = f"{where}, message {number}"
        require(isinstance(one["content"], str), here, "--chat takes texts, no token ids.")
        try:
            text = tokenizer.apply_chat_template(messages[:number], tokenize=False)
        except Exception as failure:  # the template is a program
            raise Error(f"{here}: the chat template fails ({first_line(failure)}); leave out --chat.") from None
        found.append(text[len(done):].rpartition(one["content"].strip()))
        require(text.startswith(done) and found[-1][1], here, "the chat template changes it, or those before it; leave "
                "out --chat.")
        done = text
    return found


def tokens_of(messages, tokenizer, vocabulary, chat, where):
    """(tokens, tokens of the context, spans). A line break follows each text, or it stands in the model's chat
    template, which belongs to the span. `tokenizer`: None if all contents are token ids."""
    def ids(text, **options):
        return tokenizer(text, verbose=False, add_special_tokens=False, **options)["input_ids"] if text else []

    tokens, spans, start = [], [], 0
    if tokenizer is not None:
        tokens = [id for id in tokenizer("", verbose=False)["input_ids"] if id == tokenizer.bos_token_id]
    around = _surrounded(messages, tokenizer, where) if chat else [("", one["content"], "") for one in messages]
    if tokens == ids(around[0][0])[:1]:
        tokens = []  # the template has it
    for number, (one, (before, content, after)) in enumerate(zip(messages, around), 1):
        begin = len(tokens)
        start = len(tokens := tokens + ids(before))
        if isinstance(content, str):
            tokens += ids(content + ("" if chat else "\n"), split_special_tokens=True) + ids(after)
        else:
            wrong = [id for id in content if not 0 <= id < vocabulary]
            require(not wrong, f"{where}, message {number}", f"{wrong[:1]} is not a token id of this model; ids are "
                    f"whole numbers from 0 to {vocabulary - 1}.")
            tokens += content
        spans.append(Span(one.get("span", one["role"]), begin, len(tokens)))
    return tokens, start, spans[:-1]

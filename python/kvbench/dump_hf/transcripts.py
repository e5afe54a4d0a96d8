# SPDX-License-Identifier: Apache-2.0
"""Conversations as prompts: all messages but the last answer are the context, each a span of it. The file is that of
kveval --transcripts."""

import json

from .._error import Error, first_line, require
from ..files.access import read_text
from ..files.schema import Span

EXAMPLE = '[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]'


def read_transcripts(path):
    """[(place, messages)] of the lines of a file; a message has a role, a content (text, or a list of token ids), and
    perhaps the name of its span."""
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
            f'it has no list "messages", such as {EXAMPLE}.')
    for number, one in enumerate(messages, 1):
        here, content = f"{where}, message {number}", one.get("content")
        require(isinstance(one.get("role"), str), here, 'it has no "role" that is a text.')
        require(isinstance(one.get("span", ""), str), here, '"span" is not a text.')
        require(isinstance(content, str) or isinstance(content, list) and all(type(id) is int for id in content), here,
                'it has no "content" that is a text or a list of token ids.')
        require(content, here, "it is empty; leave the message out.")
    require(len(messages) > 1 and messages[-1]["role"] == "assistant", where,
            "its last message must be an answer of the assistant, behind at least one other message.")
    return messages


def _surrounded(messages, tokenizer, where):
    """(before, after) of each message in the chat template of the tokenizer."""
    found, done = [], ""
    for number, one in enumerate(messages, 1):
        here = f"{where}, message {number}"
        require(isinstance(one["content"], str), here, "--chat takes texts, no token ids.")
        try:
            text = tokenizer.apply_chat_template(messages[:number], tokenize=False)
        except Exception as failure:  # the template is a program
            raise Error(f"{here}: its chat template fails ({first_line(failure)}); leave out --chat.") from None
        before, content, after = text[len(done):].rpartition(one["content"].strip())
        require(text.startswith(done) and content, here,
                "the model's chat template changes it, or those before it; leave out --chat.")
        found.append((before, after))
        done = text
    return found


def tokens_of(messages, tokenizer, vocabulary, chat, where):
    """(tokens, number of tokens of the context, spans). Each text is followed by a line break, or stands in the model's
    chat template, which belongs to the span. `tokenizer`: None if all contents are token ids."""
    def ids(text, **options):
        return tokenizer(text, verbose=False, add_special_tokens=False, **options)["input_ids"]

    tokens, spans = [], []
    if tokenizer is not None:
        tokens = [id for id in tokenizer("", verbose=False)["input_ids"] if id == tokenizer.bos_token_id]
    around = _surrounded(messages, tokenizer, where) if chat else [("", "\n")] * len(messages)
    if chat and tokens == ids(around[0][0])[:1]:
        tokens = []  # the template has it
    for number, (one, (before, after)) in enumerate(zip(messages, around), 1):
        begin, content = len(tokens), one["content"]
        if chat:
            tokens += ids(before)
            start, content = len(tokens), content.strip()
            tokens += ids(content, split_special_tokens=True) + ids(after)
        elif isinstance(content, str):
            start = begin
            tokens += ids(content + after, split_special_tokens=True)
        else:
            start = begin
            wrong = [id for id in content if not 0 <= id < vocabulary]
            require(not wrong, f"{where}, message {number}", f"{wrong[:1]} is not a token id of this model; ids are "
                    f"whole numbers from 0 to {vocabulary - 1}.")
            tokens += content
        spans.append(Span(one.get("span", one["role"]), begin, len(tokens)))
    spans.pop()
    return tokens, start, [span for span in spans if span.begin < span.end]

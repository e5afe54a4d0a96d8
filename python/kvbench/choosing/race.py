# SPDX-License-Identifier: Apache-2.0
"""A race of configurations over documents, which may be looked at after every document without spoiling its error rate.

Two configurations are compared by d, the logarithm of the ratio of their damage on one document. Under the hypothesis
that neither is better, d is symmetric about 0 given the documents before. Two e-values measure the evidence that it
lies above: by size, with S = sum of d and V = sum of d^2,

    mean over lambda > 0 of exp(lambda S - lambda^2 V / 2),    lambda half-normal with standard deviation SPREAD

(each is a supermartingale, de la Pena 1999),

and by sign, with k of n nonzero d positive: the mean over p in (1/2, 1) of (2p)^k (2(1-p))^(n-k). The first is the
stronger one over many documents, the second over few, or where single documents differ a lot. Their mean is an e-value
too: by Ville's inequality it ever exceeds 1 / a with probability at most a. Each ordered pair is given its equal share
of the error rate.

So a statement is about the symmetry of d. If single documents differ a lot and to one side, d can have a mean of 0
without being symmetric, or a mean on the other side. Therefore a configuration is only called worse if its geometric
mean is also the larger one. Documents must come in a random order: neighbouring ones of a text are alike."""

import math
import random
from collections.abc import Iterable

DRAWS = 2000  # of a bootstrap
SPREAD = 2.0  # of lambda: differences of about 1 / SPREAD in the logarithm are found soonest


def evidence_by_size(total: float, squares: float) -> float:
    """The first e-value, of S and V."""
    spread = 1 + SPREAD**2 * squares
    z = SPREAD * total / math.sqrt(spread)
    chance = 0.5 * math.erfc(-z / math.sqrt(2))
    return math.exp(min(700.0, z * z / 2)) * 2 * chance / math.sqrt(spread) if chance > 0 else 0.0


def evidence_by_sign(above: int, count: int) -> float:
    """The second e-value, of k and n."""
    # The integral of p^k (1-p)^(n-k) from 1/2 on is B(k+1, n-k+1) times the chance that a binomial variable of n + 1
    # trials at 1/2 is at most k.
    chance = sum(math.comb(count + 1, i) for i in range(above + 1)) / 2**(count + 1)
    return 2**(count + 1) * chance / ((count + 1) * math.comb(count, above))


def least_documents(count: int, error: float) -> int:
    """The number of documents from which on a race of `count` configurations can tell two of them apart if one is
    better on each document, by however much: signs alone."""
    documents = 1
    while evidence_by_sign(documents, documents) / 2 < threshold(count, error):
        documents += 1
    return documents


def geometric_mean(values: list[float]) -> float:
    """That of numbers of at least 0, which count as at least 1e-12."""
    return math.exp(math.fsum(math.log(max(value, 1e-12)) for value in values) / len(values))


def bootstrap_interval(values: list[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval (low, high) of the geometric mean of positive numbers."""
    logs, draw = [math.log(value) for value in values], random.Random(0)
    means = sorted(math.fsum(draw.choices(logs, k=len(logs))) / len(logs) for _ in range(DRAWS))
    return math.exp(means[DRAWS // 40]), math.exp(means[-1 - DRAWS // 40])


def threshold(count: int, error: float) -> float:
    """The e-value from which on one of the ordered pairs is told."""
    return count * (count - 1) / error


class Race:
    """Configurations by name, all in the race at first. `error`: the probability that the race ever drops a
    configuration in favour of one that is not better."""

    def __init__(self, names: Iterable[str], error: float=0.05) -> None:
        self.names, self.error = list(names), error
        self.alive = list(names)
        self.documents = 0
        self.dropped = {}  # name: (name of the better one, documents so far)
        self._damage = {name: [] for name in names}  # by document, as long as the configuration is in the race

    def add(self, damage: dict[str, float]) -> None:
        """The damage of one document, a number of at least 0 for each configuration that is still in the race. Drops
        the configurations that are now known to be worse than another one."""
        if set(damage) != set(self.alive) or not all(0 <= value < math.inf for value in damage.values()):
            raise ValueError(f"the race is between {self.alive}, and the document has {damage}")
        self.documents += 1
        for name, value in damage.items():
            self._damage[name].append(max(value, 1e-12))
        worse = {}
        for name in self.alive:
            better = [other for other in self.alive if other != name and self.ratio(name, other) > 1
                      and self.evidence(other, name) >= threshold(len(self.names), self.error)]
            if better:
                worse[name] = (min(better, key=self.mean), self.documents)
        self.dropped.update(worse)
        self.alive = [name for name in self.alive if name not in worse]

    @property
    def least_documents(self) -> int:
        """least_documents() of this race; 0 for one configuration, of which nothing is told."""
        return least_documents(len(self.names), self.error) if len(self.names) > 1 else 0

    def evidence(self, better: str, worse: str) -> float:
        """The e-value that `better` does less damage than `worse`, over the documents of both."""
        logs = [math.log(b / a) for a, b in zip(self._damage[better], self._damage[worse])]
        by_size = evidence_by_size(sum(logs), sum(d * d for d in logs))
        by_sign = evidence_by_sign(sum(d > 0 for d in logs), sum(d != 0 for d in logs))
        return (by_size + by_sign) / 2

    def damage(self, name: str) -> list[float]:
        """The damage of each document that the configuration was measured on."""
        return list(self._damage[name])

    def mean(self, name: str) -> float | None:
        """Geometric mean of the damage over the documents that the configuration was measured on; None without any."""
        values = self._damage[name]
        return geometric_mean(values) if values else None

    def ratio(self, name: str, to: str) -> float:
        """Geometric mean of the ratio of the damage of two configurations over the documents of both."""
        logs = [math.log(a / b) for a, b in zip(self._damage[name], self._damage[to])]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None

    @property
    def leader(self) -> str:
        """The configuration with the least damage among those in the race."""
        return min(self.alive, key=lambda name: (self.mean(name) or 0, self.names.index(name)))

    @property
    def decided(self) -> bool:
        return len(self.alive) == 1

# SPDX-License-Identifier: Apache-2.0
"""The race of kvbench-choose keeps its error rate."""
import math
import random

from support import PackageTest

from kvbench import _race


class Evidence(PackageTest):
    def test_by_size_is_the_integral(self):
        for total, squares in ((3.0, 2.5), (-2.0, 1.5), (0.0, 0.0), (40.0, 60.0)):
            steps, most = 200_000, 20.0
            width = most / steps
            sd = 2.0
            integral = math.fsum(math.exp(x * total - x * x * squares / 2) * math.exp(-(x / sd)**2 / 2)
                                 for x in ((i + 0.5) * width for i in range(steps))) * width * 2 / (
                                     sd * math.sqrt(2 * math.pi))
            self.assertAlmostEqual(_race.evidence_by_size(total, squares) / integral, 1, places=5)

    def test_by_sign_by_hand(self):
        """One positive: the integral of 2p over (1/2, 1), times 2, is 2 (1 - 1/4) = 3/2. One negative: 1/2. Two
        positive: 2 * 4/3 * (1 - 1/8) = 7/3."""
        self.assertEqual([_race.evidence_by_sign(0, 0), _race.evidence_by_sign(1, 1), _race.evidence_by_sign(0, 1)],
                         [1, 1.5, 0.5])
        self.assertAlmostEqual(_race.evidence_by_sign(2, 2), 7 / 3)

    def test_nothing_overflows(self):
        self.assertEqual(_race.evidence_by_size(-1e6, 1e3), 0)
        self.assertGreater(_race.evidence_by_size(1e6, 1e3), 1e100)


class Races(PackageTest):
    def race(self, draw, true, documents, error=0.05):
        race = _race.Race(true, error)
        for _ in range(documents):
            common = random.gauss(0, 1)  # a document that is hard for all
            race.add({name: math.exp(min(300, common + true[name] + draw())) for name in race.alive})
            if race.decided:
                break
        return race

    def test_wrong_decisions(self):
        """200 races with a known best, and 200 between equals that anything dropped is wrong about."""
        random.seed(5)
        for draw in (lambda: random.gauss(0, 0.4), lambda: random.choice((-1, 1)) * random.paretovariate(1.2) / 4):
            known = [self.race(draw, {"a": 0, "b": 0.1, "c": 0.4, "d": 1.0}, 80) for _ in range(200)]
            self.assertLessEqual(sum("a" not in race.alive for race in known), 10 + 6)  # 5 %, and twice its deviation
            equal = [self.race(draw, {"a": 0, "b": 0}, 80) for _ in range(200)]
            self.assertLessEqual(sum(race.decided for race in equal), 10 + 6)
        self.assertGreater(sum("d" not in race.alive for race in known), 150)

    def test_a_clear_difference_takes_a_dozen_documents(self):
        random.seed(6)
        races = [self.race(lambda: random.gauss(0, 0.3), {"a": 0, "b": 1.5}, 40) for _ in range(20)]
        self.assertTrue(all(race.alive == ["a"] for race in races))
        self.assertLess(sorted(race.documents for race in races)[10], 14)

    def test_looking_once_too_often_is_the_fault_that_it_avoids(self):
        """A t-test after every document, the obvious rule, is wrong in far more than 5 % of races between equals."""
        random.seed(7)
        wrong = 0
        for _ in range(200):
            logs = []
            for _ in range(80):
                logs.append(random.gauss(0, 1))
                if len(logs) > 3:
                    mean = math.fsum(logs) / len(logs)
                    sd = math.sqrt(math.fsum((d - mean)**2 for d in logs) / (len(logs) - 1))
                    if abs(mean) > 2.2 * sd / math.sqrt(len(logs)):
                        wrong += 1
                        break
        self.assertGreater(wrong, 30)

    def test_damage_of_the_wrong_configurations(self):
        race = _race.Race(["a", "b"])
        for damage in ({"a": 1}, {"a": 1, "b": math.nan}, {"a": 1, "b": -1}, {"a": 1, "b": 2, "c": 3}):
            with self.subTest(damage=damage), self.assertRaises(ValueError):
                race.add(damage)
        race.add({"a": 0, "b": 0})  # exact both
        self.assertEqual((race.leader, race.alive), ("a", ["a", "b"]))

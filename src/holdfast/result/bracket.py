"""What is known of a score's worst case: proven from below, found from above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from holdfast.machinery.numbers import Floats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Bracket:
    """Between what is proven and what was found lies the lowest score of a set, for each point.

    Attributes
    ----------
    score : (n,) array
        What today's model gives.
    proven_score : (n,) array
        No model of the set gives less.
    found_score : (n,) array
        The lowest that was found: some model of the set gives this.
    index : sequence, optional
        Labels of the points; their positions by default.

    Examples
    --------
    >>> import numpy as np
    >>> bracket = Bracket(np.array([1.0]), np.array([-0.5]), np.array([0.0]))
    >>> bracket
    <Bracket, rows: 1, median width 0.5>
    >>> bracket.found_validity, bracket.width
    (array([0.5]), array([0.5]))
    """

    score: Floats
    proven_score: Floats
    found_score: Floats
    index: Any = None

    @property
    def proven_validity(self) -> Floats:
        """Probability of approval that every model of the set gives at least."""
        return np.asarray(special.expit(self.proven_score))

    @property
    def found_validity(self) -> Floats:
        """Probability of approval under the worst model that was found."""
        return np.asarray(special.expit(self.found_score))

    @property
    def width(self) -> Floats:
        """How far apart both scores are: 0 where the worst case is known exactly."""
        return np.asarray(self.found_score - self.proven_score)

    def take(self, rows: Any) -> Bracket:
        """Return some of the rows.

        Examples
        --------
        >>> import numpy as np
        >>> numbers = np.array([1.0, 2.0])
        >>> Bracket(numbers, numbers - 1.0, numbers).take([1]).proven_score
        array([1.])
        """
        index = None if self.index is None else np.asarray(self.index)[rows]
        return replace(
            self,
            score=self.score[rows],
            proven_score=self.proven_score[rows],
            found_score=self.found_score[rows],
            index=index,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame, a row for each point.

        Examples
        --------
        >>> import numpy as np
        >>> numbers = np.zeros(1)
        >>> Bracket(numbers, numbers - 1.0, numbers).to_frame().round(3).iloc[0].tolist()
        [0.0, -1.0, 0.0, 0.269, 0.5]
        """
        import pandas as pd

        names = ("score", "proven_score", "found_score", "proven_validity", "found_validity")
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=self.index)

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        known = self.width[np.isfinite(self.width)]
        median = f", median width {np.median(known):.3g}" if known.size else ""
        return f"<Bracket, rows: {len(self)}{median}>"

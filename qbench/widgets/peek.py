"""The values of tensors that widgets look at, in both models: computed when somebody looks, for as long as they do."""

import threading
from weakref import WeakKeyDictionary

from qbench.errors import Cancelled, QBenchError
from qbench.evaluate.values import Values
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.session.session import Session
from qbench.views import Part, ValuesView

Place = tuple[str, Part]


class Peek:
    """What each widget of a session looks at, and its values for the newest config."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._wanted = WeakKeyDictionary[object, Place]()
        self._values: dict[Place, tuple[QuantConfig, Values | ValuesView]] = {}

    def want(self, who: object, place: Place | None) -> bool:
        """A widget looks at the values of a layer's tensor, or no longer; whether `update` has something to do."""
        with self._lock:
            self._wanted.pop(who, None)
            if place is not None:
                self._wanted[who] = place
            self._values = {one: known for one, known in self._values.items() if one in self._wanted.values()}
            return place is not None and place not in self._values

    def values(self, who: object) -> Values | ValuesView | None:
        """The newest of what a widget wants, or why there are none; None before they are there."""
        with self._lock:
            place = self._wanted.get(who)
            return None if place is None or place not in self._values else self._values[place][1]

    def update(self, cancel: Cancel) -> bool:
        """Compute what is wanted for the config that counts now; whether anything is new. Cancelled when asked to."""
        config, places = self._session.config, self._stale()
        for place in places:
            try:
                found: Values | ValuesView = self._session.values(*place, cancel=cancel)
            except Cancelled:
                raise
            except QBenchError as error:
                found = ValuesView(layer=place[0], part=place[1], tensor="", absent=str(error))
            with self._lock:
                self._values[place] = config, found
        return bool(places)

    def _stale(self) -> list[Place]:
        config = self._session.config
        with self._lock:
            wanted = dict.fromkeys(self._wanted.values())
            return [one for one in wanted if one not in self._values or self._values[one][0] != config]

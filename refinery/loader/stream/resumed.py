"""A stream that goes on from a state: in the version of the corpus, and in the rows, that the state counts in."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.loader.read.damage import Damage
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.samples import DocumentStarts, Domain
from refinery.loader.read.versions.versions import NotDelivered, Version, Versions
from refinery.loader.storage.fetch import Stop
from refinery.loader.storage.store import Store
from refinery.loader.stream.carried import Carried, Files, check_shards, only_of
from refinery.loader.stream.damaged_rows import with_damage
from refinery.loader.stream.delivered import DeliveredBatches
from refinery.loader.stream.left_out import left_outs_in
from refinery.loader.stream.loops import Arranger
from refinery.loader.stream.state import (
    StateError,
    check_identity,
    check_unchanged,
    digests_in,
    place_in,
    same,
    with_block,
)
from refinery.loader.view.past_view import ViewVersions


class ResumedBatches(DeliveredBatches):
    """DeliveredBatches with `load_state_dict`. A subclass opens what is read and says what a state depends on."""

    manifest: Manifest
    corpus: str
    split: str
    subset: int | float | None
    _part: str | None
    _published: str
    _store: Store
    _carried: dict[str, Any] | None
    _packed_files: Files | None = None  # how files of packed rows are listed, where these are read
    order_params: Any
    _versions: Versions | ViewVersions
    _arrange: Arranger
    _remote: RemoteParams | None
    _source: Any
    _documents: DocumentStarts
    _stop: Stop
    _damage: Damage | None

    def _identity(self) -> dict[str, Any]:
        """What a state and the stream that loads it must have in common."""
        raise NotImplementedError

    def _filled(self, domains: Sequence[Domain]) -> list[int]:
        """Places of each domain that are tokens, not padding."""
        raise NotImplementedError

    def _open_source(self, remote: RemoteParams | None) -> Any:
        """Where batches come from; `close` ends it."""
        raise NotImplementedError

    def _new_documents(self) -> tuple[Stop, DocumentStarts]:
        """Document starts, and the Stop that cancels the reading of indexes. Neither refers to the stream."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch delivered."""
        raise NotImplementedError

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the batch at which `state` was taken, whatever the number of ranks, workers or rows was.

        Raises StateError, which names what differs, for a state of another corpus, split, seed, sequence length, order
        or a mixture with another past, for a position beyond this stream's end, and for an invalid state. The stream is
        then unchanged.

        A state of an earlier version of this corpus, from which documents were taken since, is gone on with: every
        other token keeps its step and place (`not_delivered`).
        """
        with self._lock:
            old = dict(self.__dict__)
            try:
                if self._carried is not None and not (isinstance(state, Mapping) and state.get("carried")):
                    self._carry(None)
                self._turn_to(self._versions.of(state, self.corpus))
                self._turn_to_rows(state)
                self._turn_to_carried(state)
                self._load(state)
            except BaseException:
                self.__dict__.update(old, _taking=True)  # what made batches may be closed
                raise
            if self._opened is not old["_opened"]:
                old["_source"].close()

    def _turn_to(self, version: str) -> None:
        """Arrange everything as it is in a version of the corpus, and stop making batches if that is another one."""
        if version == self.corpus:
            return
        if self._packing:
            raise StateError(
                "state: of an earlier version of this corpus, from which documents were taken since. Its documents "
                "are packed into other rows now, so it cannot continue in them; deliver the rest from the earlier "
                "version while it exists, or start a new stream with another seed"
            )
        if self._opened.is_masked:
            raise StateError(
                "state: of an earlier version of this corpus, from which documents were taken since. Its loss masks "
                "are those of the documents that are left, so it cannot continue in them; deliver the rest from the "
                "earlier version while it exists, or start a new stream with another seed"
            )
        self._halt()
        self.corpus = version
        if isinstance(self._versions, ViewVersions):
            self._opened, past_view = self._versions.turn(version)
            self._past = past_view
            self._shards = self._opened.choose(self.split, None)
            self._arrange = replace(self._arrange, opened=self._opened)
        else:
            before = self._past if isinstance(self._past, Version) else None
            self._past, self._shards = self._versions.turn(version, self._shards, self.split, before)
            inner = getattr(self._source, "inner", self._source)
            self._source = self._past.source(inner, self._batch_params.pad_id) if self._past else inner
        schedule, loop, self._ids = self._arrange(self._shards, self._filled)
        self._replace_schedule(schedule, loop)
        if isinstance(self._versions, ViewVersions):
            self._damage = None if self._damage is None else Damage()  # shards have other numbers
            self._source = self._open_source(self._remote)
            self._versions.say(past_view)
        self._stop, self._documents = self._new_documents()

    def _turn_to_rows(self, state: Any) -> None:
        """Arrange packed rows as a state counts them."""
        packing = self._packing and self._packing.of_state(state)
        if packing is None or packing is self._packing:
            return
        self._halt()
        self._packing = packing
        self._arrange = replace(self._arrange, pack=packing.of(self.split, self._remote))
        schedule, loop, self._ids = self._arrange(self._shards, self._filled)
        self._replace_schedule(schedule, loop)

    def continue_from(self, earlier: "ResumedBatches") -> dict[str, Any]:
        """Go on where another stream is, whatever its weights, rows, seed or data sets: first what it left of its
        running epoch, then whole epochs. Returns the state, which loads into any stream like this one.

        For this stream it is a beginning: it is at position 0, what is left over is its first epoch, and stages of
        weights begin here. Of what the earlier one had used, nothing comes again before the epoch is complete; shards
        that it did not read are new. The same on all ranks; `earlier` may have any number of them.

        Raises StateError where what was used has no counterpart here: packed rows of a corpus (PackedStream) and its
        tokens, shards with other bytes, no shard in common; ValueError for streams of a subset or of chosen shards.
        Cost: of each row that was used or is left 0.1 us and 16 bytes, now and whenever such a state is loaded.
        """
        record = earlier._record()
        for each in (self, earlier):
            if each.subset is not None or each._part is not None:
                raise ValueError("continue_from: a stream of a subset or of chosen shards given, one of all is allowed")
            if each._packing is not None and each._packing.buckets is not None:
                raise ValueError("continue_from: a stream of LengthBuckets given, one of other rows is allowed")
        with self._lock:
            old = dict(self.__dict__)
            try:
                self._turn_to(self._published)
                self._carry(record)
                self._move_to(0, 0, None)
            except BaseException:
                self.__dict__.update(old, _taking=True)
                raise
        return self.state_dict()

    def _record(self) -> dict[str, Any]:
        """What a stream that is continued from this one has to know of it, as JSON."""
        with self._lock:
            self._count()
            epoch, position = self._loop.at(self._epoch, self._position)
            counts = self._schedule.reached(epoch, position)
        identity, domains = self._identity(), self._schedule.domains
        reached = {
            domain.name: [int(number) for number in domain.at(count)]
            for domain, count in zip(domains, counts, strict=True)
        }
        found = {name: identity[name] for name in ("corpus", "split", "sequence_length", "seed", "order")}
        mixed = self._schedule.mixture is not None
        is_over = all(epoch for epoch, _ in reached.values()) and only_of(self._carried, self.corpus)
        earlier = None if is_over else self._carried  # what it left of an epoch that is complete matters no more
        return found | {"at": self._store.root, "mixed": mixed, "reached": reached, "carried": earlier}

    def _carry(self, record: Mapping[str, Any] | None) -> None:
        """Arrange everything so that the first epoch is what the streams of a record left over."""
        self._halt()
        carry = None
        if record is not None:
            carried = Carried(record, self._opened, self._remote, self._packed_files)
            check_shards(carried, self._shards)
            carry = carried.domains
        self._carried = None if record is None else dict(record)
        self._arrange = replace(self._arrange, carry=carry)
        schedule, loop, self._ids = self._arrange(self._shards, self._filled)
        self._replace_schedule(schedule, loop)

    def _turn_to_carried(self, state: Any) -> None:
        """Arrange the first epoch as a state counts it."""
        record = state.get("carried") if isinstance(state, Mapping) else None
        if same(record, self._carried):
            return
        if record is not None and self._past is not None:
            raise StateError(
                "state: it continues another stream, in an earlier version of this corpus; deliver its first epoch "
                "from that version while it exists, or start a new stream with another seed"
            )
        self._carry(record)

    @property
    def not_delivered(self) -> NotDelivered | None:
        """What this stream delivers not: documents that were taken out since the version that it goes on in, and tokens
        of this rank's rows that are damaged. None where it delivers everything."""
        found = None if self._past is None else self._past.not_delivered
        if not self._left_out.tokens:
            return found
        return with_damage(found, self._left_out, self._opened, self._shards, self._past)

    def _load(self, state: Mapping[str, Any]) -> None:
        given, state = state, with_block(state, self.order_params.block or None, self._schedule.domains)
        check_identity(state, self._identity(), f"{self.manifest.name!r} ({self._store.root})")
        epoch, position = place_in(state, self._schedule, self._loop)
        digests = digests_in(state, len(self._schedule.domains))
        left_out = left_outs_in(state)
        check_unchanged(given)
        with self._lock:
            self._move_to(epoch, position, digests)
            self._left_out = left_out

-- One row: what holds for the whole journal. size and root are the tree head.
CREATE TABLE journal (
	one        boolean PRIMARY KEY DEFAULT true CHECK (one),
	id         uuid    NOT NULL DEFAULT gen_random_uuid(),
	lock_class int     NOT NULL, -- first key of the advisory locks of this journal
	size       bigint  NOT NULL DEFAULT 0,
	root       text    NOT NULL
);

-- One row: how often bytes were deleted, and up to which time the tables were
-- written again without them.
CREATE TABLE scrub (
	one      boolean PRIMARY KEY DEFAULT true CHECK (one),
	deleted  bigint NOT NULL DEFAULT 0,
	scrubbed bigint NOT NULL DEFAULT 0
);
INSERT INTO scrub DEFAULT VALUES;

-- Openings. The token rises with each connection of an opening; an opening that
-- has ended never appends again.
CREATE TABLE owners (
	id     int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	owner  text        NOT NULL UNIQUE,
	token  bigint      NOT NULL DEFAULT 1,
	host   text        NOT NULL,
	pid    int         NOT NULL,
	opened timestamptz NOT NULL DEFAULT now(),
	ended  timestamptz
);

-- One row for each transaction of the server that appended. The sequencer sets
-- pos, the position of the last entry, and the hashes of the tree that the
-- entries complete, from the index hash_at on.
CREATE TABLE flushes (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	owner   int    NOT NULL,
	number  bigint NOT NULL,
	entries int    NOT NULL,
	pos     bigint,
	hash_at bigint,
	hashes  bytea,
	UNIQUE (owner, number)
);
ALTER TABLE flushes ALTER hashes SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX flushes_pos ON flushes (pos) WHERE pos IS NOT NULL;
CREATE UNIQUE INDEX flushes_hash_at ON flushes (hash_at) WHERE hash_at IS NOT NULL;
CREATE INDEX flushes_new ON flushes (id) WHERE pos IS NULL AND entries > 0;

CREATE TABLE entries (
	flush   bigint NOT NULL,
	n       int    NOT NULL, -- from 1
	session bytea  NOT NULL,
	txn     bytea  NOT NULL,
	call    bytea  NOT NULL,
	kind    text   NOT NULL,
	head    bytea  NOT NULL,
	salt    bytea,
	body    bytea,
	leaf    bytea  NOT NULL,
	erased  bytea,
	PRIMARY KEY (flush, n)
);
CREATE INDEX entries_session ON entries (session, flush) WHERE session <> '';
CREATE INDEX entries_txn ON entries (txn, flush) WHERE txn <> '';
CREATE INDEX entries_call ON entries (call, flush) WHERE call <> '';
CREATE INDEX entries_kind ON entries (kind, flush);

CREATE TABLE txns (
	txn   bytea   PRIMARY KEY,
	age   bigint  GENERATED ALWAYS AS IDENTITY,
	owner text    NOT NULL,
	ended boolean NOT NULL DEFAULT false
);
CREATE INDEX txns_unfinished ON txns (age) WHERE NOT ended;

-- id is the SHA-256 of the resource, whose text can be longer than an index
-- allows.
CREATE TABLE claims (
	id       bytea PRIMARY KEY,
	resource bytea NOT NULL,
	txn      bytea NOT NULL
);
CREATE INDEX claims_txn ON claims (txn);

-- Content. A small blob is in data, a large one in chunks. A row without a
-- digest is being stored.
CREATE TABLE blobs (
	id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	digest bytea       UNIQUE,
	size   bigint      NOT NULL DEFAULT 0,
	data   bytea,
	named  boolean     NOT NULL DEFAULT false,
	owner  int         NOT NULL,
	stored timestamptz NOT NULL DEFAULT now()
);

-- A chunk without data is zeros.
CREATE TABLE chunks (
	blob bigint NOT NULL,
	n    int    NOT NULL,
	size int    NOT NULL,
	data bytea,
	PRIMARY KEY (blob, n)
);
ALTER TABLE chunks ALTER data SET STORAGE EXTERNAL;

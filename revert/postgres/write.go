package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// insertEntries stores all entries of a flush with one statement, which also
// checks the token of the owner: with another token, the flush has no owner,
// which the table refuses, and the transaction with it.
const insertEntries = `WITH f AS (
	INSERT INTO flushes (owner, number, entries)
	VALUES ((SELECT id FROM owners WHERE id = $1 AND token = $4 AND ended IS NULL), $2, $3)
	RETURNING id)
INSERT INTO entries (flush, n, ` + entryColumns + `)
SELECT f.id, e.n, e.session, e.txn, e.call, e.kind, e.head, e.salt, e.body, e.leaf, NULL
FROM f, unnest($5::bytea[], $6::bytea[], $7::bytea[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[])
	WITH ORDINALITY AS e (session, txn, call, kind, head, salt, body, leaf, n)`

// insertFlush is insertEntries for batches without entries. A barrier needs it
// too: the server syncs its log only at the end of a transaction that wrote.
const insertFlush = `INSERT INTO flushes (owner, number, entries)
	VALUES ((SELECT id FROM owners WHERE id = $1 AND token = $3 AND ended IS NULL), $2, 0)`

// write writes the batches that passed, and commits.
func (f *flush) write(ctx context.Context, s *session, passed []journal.Batch) error {
	var b pgx.Batch
	f.view.queueTxns(&b)
	f.view.queueClaims(&b)
	queueNamed(&b, f.journal, passed)
	f.view.queueErase(&b)
	f.queueEntries(&b, s, passed)
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the server answered %s to a commit", tag)
		}
		return nil
	})
	f.sent = true
	return s.conn.SendBatch(ctx, &b).Close()
}

func (f *flush) queueEntries(b *pgx.Batch, s *session, passed []journal.Batch) {
	var entries []record.Entry
	for _, p := range passed {
		entries = append(entries, p.Entries...)
	}
	if len(entries) == 0 {
		b.Queue(insertFlush, f.journal.id, f.number, s.token)
		return
	}
	var sessions, txns, calls, heads, salts, bodies, leaves [][]byte
	var kinds []string
	for _, e := range entries {
		sessions, txns, calls = append(sessions, []byte(e.Header.Session)), append(txns, []byte(e.Header.Txn)), append(calls, []byte(e.Header.Call))
		kinds, heads = append(kinds, string(e.Header.Kind)), append(heads, e.Head)
		salts, bodies, leaves = append(salts, e.Salt), append(bodies, e.Body), append(leaves, packDigest(e.Leaf))
	}
	b.Queue(insertEntries, f.journal.id, f.number, int32(len(entries)), s.token, sessions, txns, calls, kinds, heads, salts, bodies, leaves)
}

// queueTxns stores owners and ends. New transactions get their age in the order
// of their batches.
func (v *view) queueTxns(b *pgx.Batch) {
	var began, changed, ended [][]byte
	var owners, owner []string
	for _, txn := range v.taken {
		if v.began[txn] {
			began, owners = append(began, []byte(txn)), append(owners, v.txns[txn].owner)
		} else {
			changed, owner = append(changed, []byte(txn)), append(owner, v.txns[txn].owner)
		}
	}
	for _, txn := range v.ended {
		ended = append(ended, []byte(txn))
	}
	if len(began) > 0 {
		b.Queue("INSERT INTO txns (txn, owner) SELECT txn, owner FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS t (txn, owner, n) ORDER BY n", began, owners)
	}
	if len(changed) > 0 {
		b.Queue("UPDATE txns SET owner = t.owner FROM unnest($1::bytea[], $2::text[]) AS t (txn, owner) WHERE txns.txn = t.txn", changed, owner)
	}
	if len(ended) > 0 {
		b.Queue("UPDATE txns SET ended = true WHERE txn = ANY($1::bytea[])", ended)
		b.Queue("DELETE FROM claims WHERE txn = ANY($1::bytea[])", ended)
	}
}

// queueClaims stores new claims. If another node stored one meanwhile, the
// unique key makes the flush begin again.
func (v *view) queueClaims(b *pgx.Batch) {
	if len(v.got) == 0 {
		return
	}
	var ids, resources, txns [][]byte
	for _, resource := range slices.Sorted(maps.Keys(v.got)) {
		ids, resources, txns = append(ids, claimID(resource)), append(resources, []byte(resource)), append(txns, []byte(v.got[resource]))
	}
	b.Queue("INSERT INTO claims (id, resource, txn) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])", ids, resources, txns)
}

// queueNamed stores small content, and marks content that entries name now.
func queueNamed(b *pgx.Batch, j *Journal, passed []journal.Batch) {
	data, named := map[string][]byte{}, map[string]bool{}
	for _, p := range passed {
		for _, blob := range p.Blobs {
			digest := string(packDigest(blob.Ref().Digest))
			if inline, ok := blob.Inline().Get(); ok {
				data[digest] = inline
			} else {
				named[digest] = true
			}
		}
	}
	if len(data) > 0 {
		digests := sortedBytes(data)
		var contents [][]byte
		for _, d := range digests {
			contents = append(contents, data[string(d)])
		}
		b.Queue("SELECT pg_advisory_xact_lock_shared($1, $2)", j.class, collectLock)
		b.Queue(`INSERT INTO blobs (digest, size, data, named, owner)
			SELECT digest, length(data), data, true, $3 FROM unnest($1::bytea[], $2::bytea[]) AS c (digest, data)
			ON CONFLICT (digest) DO NOTHING`, digests, contents, j.id)
	}
	if len(named) > 0 {
		b.Queue("UPDATE blobs SET named = true WHERE digest = ANY($1::bytea[]) AND NOT named", sortedBytes(named))
	}
}

// queueErase destroys bodies and salts and keeps the digests of the bodies.
func (v *view) queueErase(b *pgx.Batch) {
	if len(v.bodies) == 0 {
		return
	}
	var flushes []int64
	var ns []int32
	var digests [][]byte
	for _, at := range v.bodies {
		flushes, ns, digests = append(flushes, at.flush), append(ns, at.n), append(digests, at.digest)
	}
	b.Queue(`UPDATE entries e SET salt = NULL, body = NULL, erased = d.digest
		FROM unnest($1::bigint[], $2::int[], $3::bytea[]) AS d (flush, n, digest) WHERE e.flush = d.flush AND e.n = d.n`, flushes, ns, digests)
	var calls [][]byte
	for _, call := range v.calls {
		calls = append(calls, []byte(call))
	}
	b.Queue("DELETE FROM requests WHERE ended IS NOT NULL AND txn IN (SELECT txn FROM entries WHERE call = ANY($1::bytea[]))", calls) // their reports name files
	b.Queue("UPDATE scrub SET deleted = deleted + 1")
}

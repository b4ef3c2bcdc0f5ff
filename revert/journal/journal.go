package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// The errors of a Journal, for errors.Is.
var (
	// ErrClaimed is returned if another transaction holds a resource. errors.As
	// finds the ClaimedError that names both.
	ErrClaimed = errors.New("resource is held by another transaction")
	// ErrNotOwner is returned if another process owns the transaction, or if it
	// has ended.
	ErrNotOwner = errors.New("transaction is not owned by this process")
	// ErrPoisoned is returned after a failed sync. The content of the disk is
	// unknown until the journal is opened again and read.
	ErrPoisoned = errors.New("journal is poisoned by a failed sync; open it again")
	// ErrNotFound is returned for an unknown transaction, call or blob.
	ErrNotFound = errors.New("not in the journal")
)

// ClaimedError names the holder of a resource that a batch claims.
type ClaimedError struct {
	Resource string // canonical text
	Holder   string // transaction ID
}

// Error names the resource and its holder. The command reads the holder out of
// the text of a recorded outcome.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s is held by transaction %s until it commits or is reverted", e.Resource, e.Holder)
}

// Unwrap makes errors.Is(err, ErrClaimed) true.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// Journal is an append-only store of entries and of the blobs that they name.
// Implementations are safe for concurrent use. If the store allows it, several
// processes can have the same journal open. Package journaltest holds the suite
// that every implementation must pass.
type Journal interface {
	// Owner identifies this opening of the journal. It is alive while the
	// process holds it. An operating-system lock shows that to other processes.
	Owner() string
	// Alive reports whether an owner still lives. It MUST NOT report a living
	// owner as dead. An owner that it reports dead never appends again.
	Alive(ctx context.Context, owner string) (bool, error)
	// Append stores a batch as one step: completely or not at all. With Durable
	// set it MUST NOT return nil before the batch and everything appended
	// earlier is on stable storage. Without Durable, a crash may lose a suffix
	// of the appended entries, but never a part from the middle. The journal
	// may keep the memory of the batch, so the caller must not change it.
	Append(ctx context.Context, b Batch) error
	// Entries yields the entries that the query selects, in journal order (or
	// newest first). It reads a snapshot: entries appended meanwhile may be
	// missing. It yields ErrDamaged for an entry whose bytes do not fit its
	// leaf.
	Entries(ctx context.Context, q Query) iter.Seq2[record.Entry, error]
	// Head returns the tree head over everything stored so far. A batch's
	// additions to the tree are stored in the same step as its entries. A crash
	// may lose entries that no durable append has followed yet. Read a head
	// that you want to keep elsewhere after a durable append.
	Head(ctx context.Context) (Head, error)
	// Hashes returns stored hashes of that tree, with the numbering of package
	// tlog. It returns an error for a hash that is not stored.
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)
	// Unfinished lists the transactions that have not ended, oldest first, with
	// their current owners.
	Unfinished(ctx context.Context) ([]Ownership, error)
	// StoreContent stores content. A blob larger than InlineMax is durable when
	// StoreContent returns; a smaller one becomes durable with the batch that
	// contains it.
	StoreContent(ctx context.Context, r io.Reader) (Blob, error)
	// OpenContent returns a reader for stored content. It fails with
	// ErrDamaged, at the latest at the end, if the bytes are not the stored
	// ones.
	OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error)
	// CollectGarbage deletes content that no entry names any more, and frees
	// its space. If gone is not nil, CollectGarbage may check only the content
	// that gone lists. From content that was stored recently and that no entry
	// names yet, it deletes what gone names, and other content only if no other
	// process has the journal open. When it returns, the store holds no bytes
	// that were erased or deleted before, except as the result says.
	CollectGarbage(ctx context.Context, gone []effect.BlobRef) (GCReport, error)
	// Close ends this opening. Its owner is dead afterwards.
	Close() error
}

// Batch is the input of one Append.
type Batch struct {
	Entries []record.Entry
	Blobs   []Blob // those that the entries name: inline ones are stored, others must exist
	Durable bool

	// Fence, if it names a transaction, refuses the whole batch with
	// ErrNotOwner unless that transaction is unfinished and has that owner.
	Fence Ownership
	// Take makes Take.To.Owner the owner of a transaction: of a new one if From
	// is empty, otherwise of one whose current owner is From. Anything else
	// refuses the batch with ErrNotOwner. The journal applies Take before it
	// checks Fence.
	Take OwnerChange
	// Claims are resources that the fenced transaction holds from now until it
	// ends. A resource that another transaction holds refuses the batch with a
	// ClaimedError.
	Claims []string
	// Erase names calls. The same step destroys the body and the salt of each
	// of their earlier entries whose kind is Erasable, and keeps the digests of
	// the bodies.
	Erase []string
	// End ends the fenced transaction and releases its claims.
	End bool
}

// GCReport is the result of CollectGarbage.
type GCReport struct {
	Blobs int64 `json:"blobs"` // number of deleted blobs
	Bytes int64 `json:"bytes"` // size of the deleted blobs
	Freed int64 `json:"freed"` // bytes by which the store shrank
	Size  int64 `json:"size"`  // bytes that remain in the store
	// Waiting says why deleted bytes may remain until the next CollectGarbage.
	// Empty: they are gone.
	Waiting string `json:"waiting,omitempty"`
}

// Ownership is a transaction and its owner.
type Ownership struct {
	Txn   string
	Owner string
}

// OwnerChange moves a transaction from one owner to another.
type OwnerChange struct {
	From string    // current owner; empty: the transaction must not exist yet
	To   Ownership // empty Txn: no change of owner
}

// Query selects entries. Empty fields select everything.
type Query struct {
	Session string
	Txn     string
	Call    string
	Kinds   []record.Kind
	After   int64    // only positions greater than this
	Before  int64    // only positions less than this; 0: all
	About   []string // only entries whose body contains one of these texts, byte by byte
	Newest  bool     // newest first
	Limit   int      // maximum number of entries; 0: all
}

// ContentStore stores content and returns it. A Journal is one.
type ContentStore interface {
	StoreContent(ctx context.Context, r io.Reader) (Blob, error)
	OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error)
}

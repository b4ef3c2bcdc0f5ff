package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// The conditions that callers of a Journal tell apart with errors.Is.
var (
	// ErrClaimed: another transaction holds a resource; errors.As finds the
	// ClaimedError that names both.
	ErrClaimed = errors.New("resource is held by another transaction")
	// ErrNotOwner: the transaction belongs to somebody else, or has ended.
	ErrNotOwner = errors.New("transaction is not owned by this process")
	// ErrPoisoned: a sync failed. What the disk holds is unknown until the
	// journal is opened again and read.
	ErrPoisoned = errors.New("journal is poisoned by a failed sync; open it again")
	// ErrNotFound: no such transaction, call or blob.
	ErrNotFound = errors.New("not in the journal")
)

// ClaimedError says who holds a resource that a batch wanted.
type ClaimedError struct {
	Resource string // canonical text
	Holder   string // transaction id
}

// Error names the resource and its holder.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s is held by transaction %s until it commits or is reverted", e.Resource, e.Holder)
}

// Unwrap makes errors.Is(err, ErrClaimed) true.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// Journal is an append-only store of entries and of the blobs they name.
// Implementations are safe for concurrent use, and several processes may have
// the same one open where the store allows it. Package journaltest holds the
// suite that every implementation must pass.
type Journal interface {
	// Owner names this opening of the journal. It is alive for as long as the
	// process holds it, which an operating-system lock tells others.
	Owner() string
	// Alive reports whether an owner still lives. It MUST NOT report a living
	// owner as dead.
	Alive(ctx context.Context, owner string) (bool, error)
	// Append stores a batch as one step: all of it or nothing. With Durable set
	// it MUST NOT return nil before the batch and everything appended earlier
	// is on stable storage; without, a crash may lose a suffix of what was
	// appended, never a part from the middle.
	Append(ctx context.Context, b Batch) error
	// Entries yields what the query selects, in journal order (or newest
	// first). It reads a snapshot: entries appended meanwhile may be missing.
	// An entry whose bytes do not fit its leaf is yielded as ErrDamaged.
	Entries(ctx context.Context, q Query) iter.Seq2[record.Entry, error]
	// Head returns the tree head over everything stored so far. What a batch adds
	// to the tree is stored in the same step as its entries. Entries that no
	// durable append has followed yet may be lost in a crash, so a head that is
	// to be kept elsewhere should be asked for after one.
	Head(ctx context.Context) (Head, error)
	// Hashes reads stored hashes of that tree, numbered as package tlog does. It
	// fails for one that is not stored.
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)
	// Unfinished lists the transactions that have not ended, oldest first,
	// with their present owners.
	Unfinished(ctx context.Context) ([]Ownership, error)
	// StoreContent takes content in. A blob larger than InlineMax is durable when Keep
	// returns; a smaller one becomes durable with the batch that carries it.
	StoreContent(ctx context.Context, r io.Reader) (Blob, error)
	// OpenContent reads content back and fails with ErrDamaged, at the latest at its
	// end, when the bytes are not those that were kept.
	OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error)
	// CollectGarbage drops the content that no entry names any more, and gives room back.
	// If gone is not nil, it may look at the content that gone lists alone.
	// Of content that was kept lately and that no entry names yet, it drops what
	// gone names, and other only where nobody else has the journal open.
	// Bytes of what was erased or dropped before it are nowhere in the store once it
	// returns, except as the result says.
	CollectGarbage(ctx context.Context, gone []effect.BlobRef) (GCReport, error)
	// Close ends this opening; its owner is dead afterwards.
	Close() error
}

// Batch is what one Append stores.
type Batch struct {
	Entries []record.Entry
	Blobs   []Blob // those that the entries name and that travel inline are stored, others are only checked to exist
	Durable bool

	// Fence, where it names a transaction, refuses the whole batch with
	// ErrNotOwner unless that transaction is unfinished and has that owner.
	Fence Ownership
	// Take makes Take.To.Owner the owner of a transaction: a new one where From
	// is empty, else one whose present owner is From. Anything else refuses the
	// batch with ErrNotOwner. It happens before Fence is looked at.
	Take OwnerChange
	// Claims are resources that the fenced transaction holds from now until it
	// ends. One held by another refuses the batch with a ClaimedError.
	Claims []string
	// Erase names calls: the body and the salt of every earlier entry of theirs
	// whose kind is Erasable are destroyed, in the same step, and the digests of
	// the bodies stay.
	Erase []string
	// End ends the fenced transaction and releases its claims.
	End bool
}

// GCReport is what Collect came to.
type GCReport struct {
	Blobs int64 `json:"blobs"` // dropped
	Bytes int64 `json:"bytes"` // of those
	Freed int64 `json:"freed"` // bytes by which the store is smaller
	Size  int64 `json:"size"`  // of everything that is left, in bytes
	// Waiting says why bytes that were to go may still be there, until Collect is
	// called again; empty: they are gone.
	Waiting string `json:"waiting,omitempty"`
}

// Ownership is a transaction and its owner.
type Ownership struct {
	Txn   string
	Owner string
}

// OwnerChange moves a transaction from one owner to another.
type OwnerChange struct {
	From string    // present owner; empty: the transaction must not exist yet
	To   Ownership // empty Txn: nothing is taken
}

// Query selects entries. Empty fields select everything.
type Query struct {
	Session string
	Txn     string
	Call    string
	Kinds   []kind.Kind
	After   int64    // only positions greater than this
	About   []string // only entries whose body holds one of these, byte by byte
	Newest  bool     // newest first
	Limit   int      // at most this many; 0: all
}

// ContentStore takes content in and gives it back; a Journal is one.
type ContentStore interface {
	StoreContent(ctx context.Context, r io.Reader) (Blob, error)
	OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error)
}

package journal

import (
	"context"
	"time"
)

// RequestState says how far a request is.
type RequestState string

// The states of a request. The last three are final.
const (
	RequestAsked     RequestState = "asked"
	RequestTaken     RequestState = "taken" // its node works on it, or a process of the node died during the work
	RequestDone      RequestState = "done"
	RequestFailed    RequestState = "failed" // the node refused it, and did nothing
	RequestWithdrawn RequestState = "withdrawn"
)

// Request is work that one node asks of another. Body and Answer are text to
// the journal. The times are for people: none of them decides anything.
type Request struct {
	ID     int64        // from the journal
	Node   string       // the node that carries it out
	From   string       // the node that asked
	Txn    string       // the transaction that the work concerns; an erasure of its calls removes an ended request
	Body   []byte       // what is asked
	State  RequestState // how far it is
	Answer []byte       // of an ended request
	Read   bool         // a person who asked has read the answer

	Asked, Taken, Ended time.Time

	// Takers are the openings that took the request, oldest first. Size is the
	// size of the journal before the first of them took it.
	Takers []string
	Size   int64
}

// Ended reports whether the state is final.
func (s RequestState) Ended() bool {
	return s == RequestDone || s == RequestFailed || s == RequestWithdrawn
}

// The limits of a request, in bytes.
const (
	MaxRequestBody   = 64 << 10
	MaxRequestAnswer = 1 << 20
)

// Requests is an optional interface of a journal that several nodes share.
// Every change is durable when the method returns.
type Requests interface {
	// NodeID identifies the node of this opening.
	NodeID() string
	// Ask stores a request for another node. If the same one is there, from
	// this node and without an end, or with an answer that was not read, it
	// returns that one. It returns ErrNotFound if the journal has no such node.
	Ask(ctx context.Context, r Request) (Request, error)
	// Request returns one request, or ErrNotFound.
	Request(ctx context.Context, id int64) (Request, error)
	// Requests lists, oldest first, the requests for this node that have not
	// ended, and those from this node that have not ended or were not read.
	Requests(ctx context.Context) ([]Request, error)
	// CanTake reports whether Take can find a request. It costs little.
	CanTake(ctx context.Context) (bool, error)
	// Take takes the oldest request for this node that no living opening works
	// on. It returns ErrNotFound if there is none.
	Take(ctx context.Context) (Request, error)
	// Answer ends a request that this opening took, with its State and Answer.
	// With RequestAsked, it gives the request back. It returns ErrNotOwner if
	// this opening does not work on it: it was taken for dead.
	Answer(ctx context.Context, r Request) error
	// Withdraw ends a request that its node does not work on. It returns
	// ErrNotOwner if the node does, or if the request has ended.
	Withdraw(ctx context.Context, id int64) error
	// Discard deletes a request, also one that an opening works on. It returns
	// ErrNotFound if there is none.
	Discard(ctx context.Context, id int64) error
	// MarkRead says that a person has read the answer.
	MarkRead(ctx context.Context, id int64) error
}

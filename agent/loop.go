package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// How a loop ends other than with an answer; errors.Is tells them apart.
var (
	// ErrLoopLimit: a limit of the loop is used up. The model was told, and answered without tools where it could.
	ErrLoopLimit = errors.New("a limit of the conversation is used up")
	// ErrToolChoice: the model did not make the choice of tools that was asked for, corrected as often as is allowed.
	ErrToolChoice = errors.New("the model did not call as it was asked to")
	// ErrIncompleteTurn: the model's last turn was not complete and asks for no call that could be answered.
	ErrIncompleteTurn = errors.New("the turn of the model is not complete")
)

// Loop runs the tool calls that a model asks for, until it asks for none. It calls no model itself, and every call that it
// runs goes the way of Txn.Invoke. It is a literal, holds nothing between runs, and may be used by any number of goroutines.
type Loop struct {
	// Adapter speaks the provider's format and knows the tools that the model is offered.
	Adapter wire.Adapter
	// CallModel asks the model: it sends the messages, with the members of the request that are about tools, and returns the whole
	// body of the response.
	CallModel func(ctx context.Context, p ModelRequest) (response json.RawMessage, err error)
	// Save makes the conversation durable: before the calls of a turn run, and after they were answered. With it a process
	// that dies goes on where it was, and nothing is done twice. An error ends the run before anything else happens. It may be
	// nil.
	Save func(ctx context.Context, c Conversation) error
	// OnResults is told of each turn's calls, and how they ended, before the model is. It may be nil.
	OnResults func(calls []wire.Call, outcomes []tool.Outcome)

	// ToolChoice is what is asked of the model: Required until it has made the call, None and Single in each turn. The loop holds
	// the model to it, also where the format has no word for it.
	ToolChoice wire.ToolChoice
	// MaxCorrections is how often a model that did not make the choice, or whose call the provider could not read, is told so; 0
	// is twice, and less is never.
	MaxCorrections int
	Order          Concurrency
	Limits         LoopLimits
}

// Concurrency says which calls of one turn run at once.
type Concurrency uint8

// The orders.
const (
	// ConcurrentReads runs calls that only read at once where they follow each other, and those whose tools are declared
	// Concurrent; every other call runs alone, in its place.
	ConcurrentReads Concurrency = iota
	// Sequential runs one call after the other.
	Sequential
	// FullyConcurrent runs the calls of a turn as Txn.InvokeAll does.
	FullyConcurrent
)

// LoopLimits bound a conversation, and each turn of it. A zero field takes its default. What was used is kept in the
// Conversation.
type LoopLimits struct {
	MaxTurns int           // of the model; default 64
	MaxCalls int           // that are run; default 1000
	MaxBytes int           // of results; default 8 MiB
	Timeout  time.Duration // in Run, without the time between runs; looked at before calls run; default 1 hour

	MaxTurnCalls int           // of one turn; default 64
	MaxTurnBytes int           // of the results of one turn: what is longer is cut, and says so; default 1 MiB
	TurnTimeout  time.Duration // of the calls of one turn; default 10 minutes
}

// ModelRequest is what a model is asked.
type ModelRequest struct {
	Messages []json.RawMessage          // the history, to be sent as it is
	Tools    map[string]json.RawMessage // members of the request's body; see wire.Adapter.Request
}

// Conversation is where a loop stands: plain data, which may be kept and given to another run, also in another process. A new
// one has Messages alone.
type Conversation struct {
	// Messages is the history in the provider's own shape. What the model said is in it as it came.
	Messages []json.RawMessage `json:"messages"`
	// Response is the body of the model's last response, as it came, with what the provider says of usage.
	Response json.RawMessage `json:"response,omitempty"`
	// Open: the calls of Response are not answered yet, and Response is not in Messages.
	Open bool `json:"open,omitempty"`
	// Waiting are the journal's ids of the calls of Response that wait for approval.
	Waiting []string `json:"waiting,omitempty"`
	// Stopped says in words why the loop ended without an answer, or why it asked for one.
	Stopped string `json:"stopped,omitempty"`

	ID        string        `json:"id,omitempty"` // made in the first run; calls are named by it
	Format    wire.Format   `json:"format,omitempty"`
	Txn       string        `json:"txn,omitempty"` // of the calls of Response
	Turns     int           `json:"turns,omitempty"`
	Calls     int           `json:"calls,omitempty"`
	Bytes     int           `json:"bytes,omitempty"`
	Time      time.Duration `json:"time,omitempty"`
	Corrected int           `json:"corrected,omitempty"`
	Chosen    bool          `json:"chosen,omitempty"`   // the model has made the call that Choice asks for
	Answered  int           `json:"answered,omitempty"` // how many messages there were when the model had answered
}

// Run asks the model and runs what it calls in a transaction, until it calls nothing: its answer is then the last of the
// messages, and the error nil. One that ends with its answer is returned as it is: it goes on with what the user says next.
// The conversation that is returned holds also with an error, and can be run again: what was
// done is not done again, because each call is named by the conversation, its turn and what it asks for.
//
// A call that waits for approval ends the run with tool.ErrPending, before the model is answered and before the calls that
// come after it. Once somebody has answered it, Run goes on in the same transaction, which Runtime.ResumeTxn finds.
//
// What is wrong with a call is for the model to correct, as is a denial: neither ends the run.
func (l Loop) Run(ctx context.Context, tx *Txn, c Conversation) (Conversation, error) {
	r := loopRun{Loop: l, tx: tx, c: c}
	if err := r.begin(); err != nil {
		return c, fmt.Errorf("agent: loop: %w", err)
	}
	if !r.c.Open && r.c.Answered == len(r.c.Messages) {
		return r.c, nil
	}
	for {
		over, err := r.step(ctx)
		if err != nil {
			return r.c, fmt.Errorf("agent: loop: %w", err)
		}
		if over {
			return r.c, nil
		}
	}
}

// loopRun is one run of a loop.
type loopRun struct {
	Loop
	tx      *Txn
	c       Conversation
	since   time.Time // up to which c.Time counts
	resumed bool      // the calls of the first turn may be on the journal
}

func (r *loopRun) begin() error {
	switch {
	case r.tx == nil:
		return errors.New("there is no transaction to run calls in")
	case r.CallModel == nil:
		return errors.New("Next is missing: the loop calls no model itself")
	case r.Order > FullyConcurrent:
		return fmt.Errorf("unknown order %d; valid are ReadsTogether, InSequence, AllTogether", r.Order)
	case len(r.c.Messages) == 0:
		return errors.New("the conversation has no messages; it begins with what the user says")
	case r.c.Format != "" && r.c.Format != r.Adapter.Format():
		return fmt.Errorf("the conversation is in the format %s, and the adapter speaks %s", r.c.Format, r.Adapter.Format())
	case r.c.Open && r.c.Txn != r.tx.ID():
		return fmt.Errorf("the conversation is in the midst of a turn in transaction %s, and this is %s; Runtime.Open finds it again",
			r.c.Txn, r.tx.ID())
	}
	if err := r.Limits.check(); err != nil {
		return err
	}
	if _, err := r.request(r.ToolChoice); err != nil {
		return err
	}
	r.Limits = r.Limits.withDefaults()
	if r.MaxCorrections == 0 {
		r.MaxCorrections = 2
	}
	if r.c.ID == "" {
		r.c.ID = host.NewID(r.host(), "conv_")
	}
	r.c.Format, r.c.Txn = r.Adapter.Format(), r.tx.ID()
	if !r.c.Open {
		r.c.Stopped = ""
	}
	r.since, r.resumed = r.host().Now(), r.c.Open
	return nil
}

func (r *loopRun) host() host.Host { return r.tx.s.rt.host }

// step is one turn: ask, unless that was done in an earlier run, and answer.
func (r *loopRun) step(ctx context.Context) (over bool, err error) {
	if !r.c.Open {
		if err := r.ask(ctx); err != nil {
			return false, err
		}
	}
	turn, err := r.Adapter.Turn(r.c.Response)
	if err != nil {
		return false, err
	}
	if len(turn.Calls) == 0 {
		return r.silent(ctx, turn)
	}
	over, err = r.answer(ctx, turn)
	r.resumed = false
	return over, err
}

// ask has the model say its next turn. Nothing of it counts before it can be read and is kept.
func (r *loopRun) ask(ctx context.Context) error {
	tools, err := r.request(r.choice())
	if err != nil {
		return err
	}
	if err := r.host().Point(ctx, "loop.next"); err != nil {
		return err
	}
	response, err := r.CallModel(ctx, ModelRequest{Messages: cloneMessages(r.c.Messages), Tools: tools})
	if err != nil {
		return fmt.Errorf("the model was not heard: %w", err)
	}
	if _, err := r.Adapter.Turn(response); err != nil {
		return err
	}
	r.c.Response, r.c.Open, r.c.Waiting = response, true, nil
	r.c.Turns++
	return r.keep(ctx)
}

// keep hands the conversation to whoever makes it durable.
func (r *loopRun) keep(ctx context.Context) error {
	now := r.host().Now()
	r.c.Time += max(0, now.Sub(r.since)) // the clock may jump
	r.since = now
	if r.Save == nil {
		return nil
	}
	kept := r.c
	kept.Messages = cloneMessages(r.c.Messages)
	if err := r.Save(ctx, kept); err != nil {
		return fmt.Errorf("the conversation could not be kept: %w", err)
	}
	return nil
}

// close takes the turn and what answers it into the history.
func (r *loopRun) close(ctx context.Context, turn wire.Turn, answers []json.RawMessage) error {
	r.c.Messages = append(append(cloneMessages(r.c.Messages), turn.Messages...), answers...)
	r.c.Open, r.c.Waiting = false, nil
	return r.keep(ctx)
}

func cloneMessages(messages []json.RawMessage) []json.RawMessage {
	return append(make([]json.RawMessage, 0, len(messages)), messages...)
}

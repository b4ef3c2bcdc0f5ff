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

// Errors of a loop that ends without an answer, for errors.Is.
var (
	// ErrLoopLimit says that a limit of the loop is used up. The model was
	// told, and answered without tools if it could.
	ErrLoopLimit = errors.New("a limit of the conversation is used up")
	// ErrToolChoice says that the model did not follow ToolChoice, after the
	// maximum of corrections.
	ErrToolChoice = errors.New("the model did not call as it was asked to")
	// ErrIncompleteTurn says that the model's last turn is incomplete and
	// contains no call that can be answered.
	ErrIncompleteTurn = errors.New("the turn of the model is not complete")
)

// Loop runs the tool calls that a model requests, until it requests none. It
// calls no model itself. Every call runs as in Txn.Invoke. A Loop is a literal
// without state between runs, and is safe for concurrent use.
type Loop struct {
	// Adapter converts the provider's format and knows the tools that the model
	// is offered.
	Adapter wire.Adapter
	// CallModel sends the messages to the model, with the members of the
	// request that concern tools. It returns the whole body of the response.
	CallModel func(ctx context.Context, p ModelRequest) (response json.RawMessage, err error)
	// Save makes the conversation durable: before the calls of a turn run, and
	// after they are answered. With it, a run after a crash continues the
	// conversation and repeats no call. An error ends the run before anything
	// else happens. nil: not saved.
	Save func(ctx context.Context, c Conversation) error
	// OnResults receives each turn's calls and outcomes before the model does.
	// nil: none.
	OnResults func(calls []wire.Call, outcomes []tool.Outcome)

	// ToolChoice is the choice that the model must make: Required until it has
	// made the call, None and Single in each turn. The loop enforces it even if
	// the format cannot express it.
	ToolChoice wire.ToolChoice
	// MaxCorrections bounds how often the loop corrects a model that did not
	// follow ToolChoice, or whose call the provider could not read. 0 means 2;
	// a negative number means never.
	MaxCorrections int
	Order          Concurrency
	Limits         LoopLimits
}

// Concurrency says which calls of one turn run concurrently.
type Concurrency uint8

// The values of Concurrency.
const (
	// ConcurrentReads runs consecutive calls concurrently if they only read or
	// their tools are declared Concurrent. Every other call runs alone, in its
	// position.
	ConcurrentReads Concurrency = iota
	// Sequential runs one call after the other.
	Sequential
	// FullyConcurrent runs the calls of a turn as Txn.InvokeAll does.
	FullyConcurrent
)

// LoopLimits bound a conversation and each turn of it. A zero field takes its
// default. The Conversation records what is used up.
type LoopLimits struct {
	MaxTurns int           // turns of the model; default 64
	MaxCalls int           // calls that run; default 1000
	MaxBytes int           // bytes of results; default 8 MiB
	Timeout  time.Duration // time in Run, without the time between runs; checked before calls run; default 1 hour

	MaxTurnCalls int           // calls of one turn; default 64
	MaxTurnBytes int           // bytes of the results of one turn: longer ones are cut, with a notice; default 1 MiB
	TurnTimeout  time.Duration // time of the calls of one turn; default 10 minutes
}

// ModelRequest is a request to a model.
type ModelRequest struct {
	Messages []json.RawMessage          // the history, to send unchanged
	Tools    map[string]json.RawMessage // members of the request's body; see wire.Adapter.Request
}

// Conversation is the state of a loop: plain data that can be stored and passed
// to another run, also in another process. A new one has only Messages.
type Conversation struct {
	// Messages is the history in the provider's format. The model's messages
	// are in it unchanged.
	Messages []json.RawMessage `json:"messages"`
	// Response is the unchanged body of the model's last response, including
	// the provider's usage data.
	Response json.RawMessage `json:"response,omitempty"`
	// Answer is the text of Response, if Response is the model's answer.
	Answer string `json:"answer,omitempty"`
	// Open reports that the calls of Response are not answered yet, and that
	// Response is not in Messages.
	Open bool `json:"open,omitempty"`
	// Waiting are the journal's IDs of the calls of Response that wait for an
	// approval.
	Waiting []string `json:"waiting,omitempty"`
	// Stopped says why the loop ended without an answer, or why it requested
	// one.
	Stopped string `json:"stopped,omitempty"`

	ID        string        `json:"id,omitempty"` // made in the first run; part of the call IDs
	Format    wire.Format   `json:"format,omitempty"`
	Txn       string        `json:"txn,omitempty"` // transaction of the calls of Response
	Turns     int           `json:"turns,omitempty"`
	Calls     int           `json:"calls,omitempty"`
	Bytes     int           `json:"bytes,omitempty"`
	Time      time.Duration `json:"time,omitempty"`
	Corrected int           `json:"corrected,omitempty"`
	Chosen    bool          `json:"chosen,omitempty"`   // the model has made the call that ToolChoice requires
	Answered  int           `json:"answered,omitempty"` // number of messages when the model had answered
}

// Run calls the model and runs its calls in a transaction, until it calls
// nothing. Its answer is then the last of the messages, with its text in
// Answer, and the error is nil. Run returns a conversation that ends with an
// answer unchanged; append the user's next message to continue it. The returned
// conversation is valid also with an error, and can be run again. Run does not
// repeat calls, because each call ID contains the conversation, the turn and
// the request.
//
// A call that waits for an approval ends the run with tool.ErrPending, before
// the model gets an answer and before the later calls of the turn run. After an
// answer, Run continues in the same transaction, which Runtime.ResumeTxn
// returns.
//
// An invalid or denied call does not end the run: the model can correct it.
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

// Ask appends a text of the user to a conversation, which can be new or ended
// with an answer, and runs it as Run does. It returns an error, and changes
// nothing, if calls of the last turn are open: Run continues those. The session
// notes the text as Session.Heard does, except a delegated one, in which another
// model can have written the text. Run notes nothing: call Session.Heard.
func (l Loop) Ask(ctx context.Context, tx *Txn, c Conversation, text string) (Conversation, error) {
	if c.Open {
		return c, errors.New("agent: loop: the calls of the last turn are open; continue with Run")
	}
	messages, err := l.Adapter.UserMessage(c.Messages, text)
	if err != nil {
		return c, fmt.Errorf("agent: loop: %w", err)
	}
	c.Messages = messages
	if tx != nil {
		tx.s.noteUserText(ctx, text)
	}
	return l.Run(ctx, tx, c)
}

// loopRun is one run of a loop.
type loopRun struct {
	Loop
	tx      *Txn
	c       Conversation
	since   time.Time // start of the time that c.Time does not count yet
	resumed bool      // the calls of the first turn can be on the journal
}

func (r *loopRun) begin() error {
	switch {
	case r.tx == nil:
		return errors.New("there is no transaction to run calls in")
	case r.CallModel == nil:
		return errors.New("CallModel is missing: the loop calls no model itself")
	case r.Order > FullyConcurrent:
		return fmt.Errorf("unknown order %d; valid are ConcurrentReads, Sequential, FullyConcurrent", r.Order)
	case len(r.c.Messages) == 0:
		return errors.New("the conversation has no messages; it begins with what the user says")
	case r.c.Format != "" && r.c.Format != r.Adapter.Format():
		return fmt.Errorf("the conversation is in the format %s, and the adapter speaks %s", r.c.Format, r.Adapter.Format())
	case r.c.Open && r.c.Txn != r.tx.ID():
		return fmt.Errorf("the conversation is in the midst of a turn in transaction %s, and this is %s; Runtime.ResumeTxn returns it",
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

func (r *loopRun) host() host.Host { return r.tx.s.rt.services.Host }

// step runs one turn: it calls the model, unless an earlier run did, and
// answers its calls.
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

// ask requests the model's next turn. The turn counts once it is parsed and
// saved.
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
	r.c.Response, r.c.Answer, r.c.Open, r.c.Waiting = response, "", true, nil
	r.c.Turns++
	return r.keep(ctx)
}

// keep calls Save with the conversation.
func (r *loopRun) keep(ctx context.Context) error {
	now := r.host().Now()
	r.c.Time += max(0, now.Sub(r.since)) // the clock can jump
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

// close appends the turn and its answers to the history.
func (r *loopRun) close(ctx context.Context, turn wire.Turn, answers []json.RawMessage) error {
	r.c.Messages = append(append(cloneMessages(r.c.Messages), turn.Messages...), answers...)
	r.c.Open, r.c.Waiting = false, nil
	return r.keep(ctx)
}

func cloneMessages(messages []json.RawMessage) []json.RawMessage {
	return append(make([]json.RawMessage, 0, len(messages)), messages...)
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/revert/journal"
)

// A call becomes a task when it lasts, or at once if Options.Tasks names its
// tool. The client gets the task when the journal durably holds the start of
// the call, and not before.

// startSignal holds what is known of a call when its code is about to run.
type startSignal struct {
	started chan struct{} // closed at that time
	once    sync.Once
	call    string
	keep    func(context.Context) error
}

func (b *startSignal) set(call string, keep func(context.Context) error) {
	b.once.Do(func() {
		b.call, b.keep = call, keep
		close(b.started)
	})
}

// taskState is the task side of an async call. The mutex of the async call
// guards it.
type taskState struct {
	done     bool
	origin   *approvalRequest // the approval request of the call when it became a task; nil: no task
	at       time.Time        // of the last change
	changes  chan struct{}
	deadline time.Time // when the server stops it
	timer    *time.Timer
}

// lookAgain is the delay before the server tries again to make a call a task,
// such as until another task has ended.
const lookAgain = 100 * time.Millisecond

// The reasons for which the server stops a task.
var (
	errCancelled = errors.New("the client cancelled the task")
	errOverdue   = errors.New("the call ran for as long as a task may")
)

// clientSupportsTasks reports whether the client supports the Tasks extension.
func (c *call) clientSupportsTasks() bool {
	return c.revision >= stateless && c.caps != nil && c.caps.Extensions[tasksExtension] != nil
}

// errTasksUnsupported returns the error for requests that need the Tasks
// extension.
func errTasksUnsupported() error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code: sdk.CodeMissingRequiredClientCapabilities, Data: data,
		Message: fmt.Sprintf("the client does not declare the extension %q, which this needs", tasksExtension),
	}
}

// alwaysTask reports whether each call of the tool is a task.
func (c *call) alwaysTask() bool { return slices.Contains(c.s.opts.Tasks, c.tool.Name()) }

// existingTask responds to a call that the client names by the ID of an
// existing task.
func (c *call) existingTask() (*wireResult, bool) {
	if !c.mayTask || c.named == "" {
		return nil, false
	}
	t, ok := c.s.runs.task(c.st.session.CallID(c.named))
	if !ok || t.c.tool.Digest() != c.tool.Digest() || string(t.c.input) != string(c.input) {
		return nil, false
	}
	return c.created(t.origin), true
}

// convertToTask makes the call a task and returns the response. It returns nil
// if the call cannot be a task now: it has ended, or the session has the most
// tasks.
func (t *asyncCall) convertToTask(ctx context.Context) *wireResult {
	if err := t.c.begun.keep(ctx); err != nil {
		return nil
	}
	q, err := t.c.s.recorded(ctx, t.c.begun.call, t.st)
	if err != nil {
		t.c.s.opts.Log.Warn("a call cannot become a task", "call", t.c.begun.call, "error", err)
		return nil
	}
	if !t.tryConvert(q) {
		return nil
	}
	t.c.report.attach(context.Background(), nil) // a task reports no progress
	t.c.logSender.attach(context.Background(), nil)
	return t.c.created(q)
}

// tryConvert makes the call a task, if it still runs and the session can have
// one more.
func (t *asyncCall) tryConvert(q *approvalRequest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	opts := &t.c.s.opts
	if t.done || !t.st.adjustCount(&t.st.tasks, 1, opts.MaxTasksPerSession) {
		return false
	}
	t.origin, t.at = q, time.Now()
	t.deadline = t.at.Add(opts.TaskTimeout)
	t.timer = time.AfterFunc(opts.TaskTimeout, func() { t.stop(errOverdue) })
	t.c.s.runs.name(q.call.Ref.Call, t)
	close(t.apart)
	return true
}

// finishTask must be called when the call has ended, before any client sees the
// end.
func (t *asyncCall) finishTask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.open = true, nil
	if t.origin == nil {
		return
	}
	t.timer.Stop()
	t.st.adjustCount(&t.st.tasks, -1, 0)
	t.st.storeRawResult(t.origin.call.Ref.Call, t.c.slot)
	t.change()
}

// change notifies the goroutines that wait for a change. The caller holds the
// mutex.
func (t *asyncCall) change() {
	t.at = time.Now()
	close(t.changes)
	t.changes = make(chan struct{})
}

// changed returns a channel that is closed at the next change. Asks reports
// whether the call waits for its client.
func (t *asyncCall) changed() (news <-chan struct{}, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes, t.open != nil
}

// answer returns the result of a call that ended while a request attended it. A
// tool whose calls are always tasks gets a task all the same.
func (t *asyncCall) answer(ctx context.Context, may bool) (*wireResult, error) {
	if !may || !t.c.alwaysTask() {
		return t.r, t.err
	}
	id := t.c.begun.call
	if t.r != nil {
		id, _ = t.r.Meta[metaCall].(string)
	}
	q, err := t.c.s.recorded(ctx, id, t.st)
	if err == nil {
		err = t.c.s.rt.Journal().Append(ctx, journal.Batch{Durable: true})
	}
	if err != nil {
		return t.r, t.err // the journal does not hold it
	}
	t.st.storeRawResult(id, t.c.slot)
	return t.c.created(q), nil
}

// addRequest adds a client request to a task. The client sees it at its next
// poll.
func (t *asyncCall) addRequest(q *clientRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.responses = sdk.InputResponseMap{}
	t.open, t.n = q, t.n+1
	t.change()
}

// wireKey returns the key of a client request of a task. No two client requests
// share a key.
func wireKey(key string, round int) string { return fmt.Sprintf("%s-%d", key, round) }

// asked returns the open client requests. The caller holds the mutex.
func (t *asyncCall) asked() sdk.InputRequestMap {
	if t.open == nil {
		return nil
	}
	left := sdk.InputRequestMap{}
	for key, what := range t.open.what {
		if _, ok := t.open.responses[key]; !ok {
			left[wireKey(key, t.n)] = what
		}
	}
	return left
}

// acceptInput takes responses to open client requests, and ignores others. The
// call continues when all have responses.
func (t *asyncCall) acceptInput(said map[string]json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.open
	if q == nil {
		return nil
	}
	some := sdk.InputResponseMap{}
	for key := range q.what {
		data, ok := said[wireKey(key, t.n)]
		if _, before := q.responses[key]; !ok || before {
			continue
		}
		var one sdk.InputResponseMap
		if err := json.Unmarshal(fmt.Appendf(nil, `{"it":%s}`, data), &one); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("inputResponses %q is no answer to what was asked", wireKey(key, t.n))}
		}
		some[key] = one["it"]
	}
	if len(some) == 0 {
		return nil
	}
	for key, one := range some {
		q.responses[key] = one
	}
	if len(q.responses) == len(q.what) {
		t.open = nil
		q.reply <- q.responses
	}
	t.change()
	return nil
}

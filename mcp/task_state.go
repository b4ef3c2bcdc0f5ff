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

// A call becomes a task when it lasts, or at once where its tool is one of Options.Tasks. Its client is given the task when the
// journal has for good that the call has begun, and not before.

// startSignal is what is known of a call from the moment on at which its code is about to run.
type startSignal struct {
	started chan struct{} // closed then
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

// taskState is what there is of a talk as a task. It is under the talk's mutex.
type taskState struct {
	done     bool
	origin   *approvalRequest // the call, as it was when it became one; nil: it is none
	at       time.Time        // of the last change
	changes  chan struct{}
	deadline time.Time // when it is stopped
	timer    *time.Timer
}

// lookAgain is how long a call that cannot be a task yet waits, such as until another one has ended.
const lookAgain = 100 * time.Millisecond

// The reasons for which a task ends before its call does.
var (
	errCancelled = errors.New("the client cancelled the task")
	errOverdue   = errors.New("the call ran for as long as a task may")
)

// clientSupportsTasks reports whether the client does.
func (c *call) clientSupportsTasks() bool {
	return c.revision >= stateless && c.caps != nil && c.caps.Extensions[tasksExtension] != nil
}

// errTasksUnsupported is the answer to who asks for what only a client that knows tasks can have.
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

// existingTask is the answer to a call that the client names and that is a task already.
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

// convertToTask makes the call a task and returns what the client is told. It is nil as long as the call cannot be one: it has ended, or
// there are as many as may run.
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
	t.c.report.attach(context.Background(), nil) // nobody is told of progress
	t.c.voice.attach(context.Background(), nil)
	return t.c.created(q)
}

// tryConvert makes the call a task, if it runs still and one more may.
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

// finishTask is called where the call has ended, before anybody is told of it.
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

// change tells whoever waits for something to change; the caller holds the mutex.
func (t *asyncCall) change() {
	t.at = time.Now()
	close(t.changes)
	t.changes = make(chan struct{})
}

// changed is closed when something has. Asks says whether the client is asked by now.
func (t *asyncCall) changed() (news <-chan struct{}, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes, t.open != nil
}

// answer is that of a call that ended while its request attended it. Of a tool whose calls are tasks it is one all the same.
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
		return t.r, t.err // it never came to the journal
	}
	t.st.storeRawResult(id, t.c.slot)
	return t.c.created(q), nil
}

// addRequest asks the client of a task, which sees the question when it looks.
func (t *asyncCall) addRequest(q *clientRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.said = sdk.InputResponseMap{}
	t.open, t.n = q, t.n+1
	t.change()
}

// wireKey is what a client knows a question of a task by. It is never that of another one.
func wireKey(key string, round int) string { return fmt.Sprintf("%s-%d", key, round) }

// asked are the questions that are open. The caller holds the mutex.
func (t *asyncCall) asked() sdk.InputRequestMap {
	if t.open == nil {
		return nil
	}
	left := sdk.InputRequestMap{}
	for key, what := range t.open.what {
		if _, ok := t.open.said[key]; !ok {
			left[wireKey(key, t.n)] = what
		}
	}
	return left
}

// acceptInput takes answers to questions that are open; others count for nothing. The call goes on when all are answered.
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
		if _, before := q.said[key]; !ok || before {
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
		q.said[key] = one
	}
	if len(q.said) == len(q.what) {
		t.open = nil
		q.reply <- q.said
	}
	t.change()
	return nil
}

package hooks

import (
	"context"
	"encoding/json"

	"github.com/remit-dev/remit/tool"
)

// goesOn reports whether a client says that a command goes on in the
// background.
func goesOn(e Event) bool {
	var out struct {
		Task string `json:"backgroundTaskId"`
	}
	return json.Unmarshal(e.Output, &out) == nil && out.Task != ""
}

// goesOn notes that a command that has begun goes on without a report of its
// end. It reports whether the call goes on with it: a sandboxed command is
// known until its end. After an observed one, the next events record changes.
func (one *session) goesOn(c *call) bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.leftOn = one.leftOn || c.name == observedName
	return one.letRun(c)
}

// letRun lets a sandboxed command go on, if it still runs. The caller holds mu.
func (one *session) letRun(c *call) bool {
	runs := c.name == shellName && !c.over && (c.behind || c.attached.Load())
	if runs {
		one.behind[c] = true
	}
	return runs
}

// goOn lets the open commands of the sandbox go on. It reports whether an
// observed one is open.
func (one *session) goOn() (observed bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	for id, c := range one.open {
		if observed = observed || c.name == observedName && c.begun(); one.letRun(c) {
			delete(one.open, id)
		}
	}
	return observed
}

// clientEnds ends a prompt of which the client says that it has ended. The
// client lets commands go on whose end it has not reported, unless it uses one
// tool at a time.
func (one *session) clientEnds(ctx context.Context, quiet bool) error {
	observed := one.goOn()
	err := one.promptEnds(ctx)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.leftOn = (one.leftOn || observed && !one.client.Serial) && !quiet
	return err
}

// late records what an observed command in the background changed since.
func (one *session) late(ctx context.Context) {
	one.mu.Lock()
	left := one.leftOn
	if left {
		one.placing++
	}
	one.mu.Unlock()
	if !left {
		return
	}
	defer func() {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.placing--
	}()
	tx, err := one.transaction(ctx, "")
	if err != nil {
		return
	}
	c := newCall(one, Event{}, use{})
	run := context.WithValue(context.WithoutCancel(ctx), callKey{}, c)
	// If the policy does not let it run, the changes belong to no call.
	_, _ = tx.Invoke(run, lateName, tool.Args{"client": one.client.Name, "tool": "background"})
}

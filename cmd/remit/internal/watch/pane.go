package watch

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// question is what a pane asks the person.
type question int

const (
	asksNothing question = iota
	asksApprove
	asksDeny
	asksRevert
	asksEndPrompt
)

// pane is a text that covers the list.
type pane struct {
	title string
	text  string
	id    string // of what waits
	top   int    // first visible line
	read  bool   // its last line was visible
	asks  question
	soon  question // what it asks once no key comes for a while
	why   string   // typed reason of a denial

	request Request
	plan    Plan
}

// result is what a verb returned.
type result struct {
	pane pane
	err  error
}

// start runs a verb beside the screen, and shows what it wrote.
func (m *model) start(busy string, verb func() result) tea.Cmd {
	if m.busy != "" {
		return nil
	}
	m.busy = busy
	return func() tea.Msg { return verb() }
}

// take shows what a verb wrote.
func (m *model) take(r result) tea.Cmd {
	m.busy = ""
	if r.err != nil {
		r.pane.text = strings.TrimLeft(r.pane.text+"\n"+m.problem(r.err), "\n")
		r.pane.asks = asksNothing
	}
	m.pane = &r.pane
	return m.askSoon(r.pane.asks)
}

// quietTime is how long no key may come before a question is asked. Whoever
// types ahead, holds a key or pastes a text answers nothing.
const quietTime = 500 * time.Millisecond

// quiet says that no key came since.
type quiet int

// askSoon asks a question about the text of the pane after the quiet time.
func (m *model) askSoon(q question) tea.Cmd {
	if m.pane == nil || q == asksNothing {
		return nil
	}
	m.pane.soon, m.pane.asks = q, asksNothing
	m.keys++
	n := m.keys
	return tea.Tick(quietTime, func(time.Time) tea.Msg { return quiet(n) })
}

// ask asks what the pane has to ask, if no key came meanwhile.
func (m *model) ask(n quiet) {
	if p := m.pane; p != nil && int(n) == m.keys && p.soon != asksNothing {
		p.asks, p.soon = p.soon, asksNothing
	}
}

// problem returns the text of an error as the command writes it.
func (m *model) problem(err error) string {
	var b strings.Builder
	p := &cli.Problem{What: err.Error()}
	_ = errors.As(err, &p)
	m.style.Problem(&b, "", p)
	return b.String()
}

// openRequest shows what waits, and asks at once if then says so.
func (m *model) openRequest(id string, then question) tea.Cmd {
	return m.start("reading", func() result { return m.request("", id, then) })
}

// request reads what waits, and asks if then says so. Note comes before it.
func (m *model) request(note, id string, then question) result {
	r := result{pane: pane{title: "waits for you", id: id, asks: then}}
	text, err := m.capture(func(a *cli.App) (err error) {
		r.pane.request, err = m.verbs.WriteRequest(m.ctx, a, &m.Workspace, m.rt, id)
		return err
	})
	r.pane.text, r.err = note+text, err
	if !r.pane.request.Waits {
		r.pane.title, r.pane.asks = "approval request", asksNothing
	}
	return r
}

// openCall shows everything about a call.
func (m *model) openCall(id string) tea.Cmd {
	return m.start("reading", func() result {
		r := result{pane: pane{title: "call"}}
		r.pane.text, r.err = m.capture(func(a *cli.App) error {
			return m.verbs.WriteCall(m.ctx, a, &m.Workspace, m.rt, id)
		})
		return r
	})
}

// openPlan shows what a revert of the newest work would do. Note comes before
// it.
func (m *model) openPlan(note string) tea.Cmd {
	return m.start("planning", func() result { return m.plan(note) })
}

func (m *model) plan(note string) result {
	r := result{pane: pane{title: "undo the newest work: the plan"}}
	text, err := m.capture(func(a *cli.App) (err error) {
		r.pane.plan, err = m.verbs.WritePlan(m.ctx, a, &m.Workspace, m.rt)
		return err
	})
	r.pane.text, r.err = note+text, err
	switch {
	case r.pane.plan.AtWork:
		r.pane.asks = asksEndPrompt
	case r.pane.plan.Some:
		r.pane.asks = asksRevert
	}
	return r
}

// revert does what the plan says, if it still is the plan. A person who quits
// does not interrupt it.
func (m *model) revert(plan Plan) tea.Cmd {
	return m.start("reverting", func() result {
		changed := false
		r := result{pane: pane{title: "undone"}}
		r.pane.text, r.err = m.capture(func(a *cli.App) (err error) {
			changed, err = plan.Apply(context.WithoutCancel(m.ctx), a)
			return err
		})
		if changed {
			return m.plan("Nothing was done: the plan is another one now.\n\n")
		}
		return r
	})
}

// endPrompt ends the prompts that a coding agent works on, and plans again.
func (m *model) endPrompt() tea.Cmd {
	return m.start("ending the prompt", func() result {
		_, err := m.capture(func(a *cli.App) error { return m.verbs.EndPrompts(context.WithoutCancel(m.ctx), a, &m.Workspace, m.rt) })
		if err != nil {
			return result{pane{title: "undo"}, err}
		}
		return m.plan("")
	})
}

// give records the answer to what the pane shows. A passphrase is typed at the
// terminal, so the screen makes room for it.
func (m *model) give(p *pane, r Reply) tea.Cmd {
	r.ID, r.Request, r.Shown = p.id, p.request.Digest, p.request.Shown
	verb := func() result {
		changed := false
		done := result{pane: pane{title: map[bool]string{true: "approved", false: "denied"}[r.Approves]}}
		done.pane.text, done.err = m.capture(func(a *cli.App) (err error) {
			changed, err = m.verbs.Give(context.WithoutCancel(m.ctx), a, &m.Workspace, m.rt, r)
			return err
		})
		if changed {
			return m.request("Nothing was answered: the call asks for something else now.\n\n", r.ID, asksApprove)
		}
		if done.err != nil {
			done.pane.title = "not answered"
		}
		return done
	}
	s, err := approval.ReadSettings(m.StateDir)
	if err != nil || !r.Approves || s.Passphrase == nil {
		return m.start("answering", verb)
	}
	if m.busy != "" {
		return nil
	}
	m.busy = "answering"
	at := atTerminal{verb: verb, done: new(result)}
	return tea.Exec(at, func(err error) tea.Msg {
		at.done.err = errors.Join(at.done.err, err)
		return *at.done
	})
}

// atTerminal runs a verb that reads from the terminal itself.
type atTerminal struct {
	verb func() result
	done *result
}

// Run runs the verb.
func (t atTerminal) Run() error {
	*t.done = t.verb()
	return nil
}

// SetStdin does nothing: the verb opens the terminal.
func (atTerminal) SetStdin(io.Reader) {}

// SetStdout does nothing: the verb writes to a buffer.
func (atTerminal) SetStdout(io.Writer) {}

// SetStderr does nothing: the verb writes to a buffer.
func (atTerminal) SetStderr(io.Writer) {}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/tool"
)

// approver returns the approver of calls for which the policy asks. A nil
// approver denies every ask.
func (a *app) approver(f *runFlags) (ctxperm.Approver, error) {
	mode := f.onAsk
	if mode == "deny" || mode == "wait" {
		return nil, nil // the process that answers elsewhere checks the settings
	}
	s, err := readApproval(f.state)
	if err != nil {
		return nil, err
	}
	switch mode {
	case "approve-unsafe":
		if s.Passphrase != nil {
			return nil, usage("--on-ask approve-unsafe: approvals need a passphrase here; use prompt or wait")
		}
		who, err := a.person()
		if err != nil {
			return nil, err
		}
		return ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			return ctxperm.Approve(who), nil
		}), nil
	case "prompt":
		folders := map[string]string{}
		for _, r := range f.rootWords() {
			name, dir, err := rootOf(r)
			if err != nil {
				return nil, err
			}
			folders[name] = dir
		}
		return a.prompter(s, folders, f.hint("pending"))
	default:
		return nil, &problem{
			code: exitUsage, what: fmt.Sprintf("--on-ask %q is not one of the ways to answer", mode),
			fix: "valid are deny, wait, prompt, approve-unsafe",
		}
	}
}

// promptTime bounds how long a running call waits for the user at the terminal.
// It equals the time of a pending call.
const promptTime = 24 * time.Hour

// person returns the user by the operating system. The journal names this user
// as the approver.
func (a *app) person() (string, error) {
	who, err := a.user()
	if err == nil && who != "" {
		return who, nil
	}
	return "", &problem{code: exitUsage, what: "nobody can approve: the operating system does not say who you are", fix: "use --on-ask deny"}
}

// prompter returns an approver that asks the user at the terminal. Folders has
// the folder of each root. List is the command that lists pending calls.
func (a *app) prompter(s approvalSettings, folders map[string]string, list string) (ctxperm.Approver, error) {
	who, err := a.person()
	if err != nil {
		return nil, err
	}
	tty, err := a.tty()
	if err != nil {
		return nil, &problem{code: exitUsage, what: "--on-ask prompt needs a terminal", why: err.Error(), fix: "use --on-ask wait, and answer at a terminal: " + list + "; or --on-ask deny"}
	}
	p := &prompt{app: a, settings: s, folders: folders, who: who, tty: tty, in: bufio.NewReader(tty), turn: host.NewLock(a.host, "remit.prompt"), hold: a.progress.hold}
	return p, nil
}

// prompt asks for one approval at a time.
type prompt struct {
	app      *app
	settings approvalSettings
	folders  map[string]string // of the roots

	who  string
	tty  io.Writer
	in   *bufio.Reader
	turn *host.Lock
	hold func() (release func()) // holds the progress line back while the prompt is shown
}

// Approve shows everything that would run. Only "y" approves.
func (p *prompt) Approve(ctx context.Context, ask ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
	if err := p.turn.Lock(ctx); err != nil {
		return ctxperm.Answer{}, err
	}
	defer p.turn.Unlock()
	defer p.hold()()
	if _, err := fmt.Fprint(p.tty, question(ask), askedAgain); err != nil {
		return ctxperm.Answer{}, err
	}
	for {
		text, err := p.read(ctx)
		if err != nil {
			return ctxperm.Answer{}, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return p.approved()
		case "?":
			_, err = fmt.Fprint(p.tty, explanation, askedAgain)
		case "d":
			p.difference(ctx, ask)
			_, err = fmt.Fprint(p.tty, askedAgain)
		default:
			return ctxperm.Deny(p.who, "they said no"), nil
		}
		if err != nil {
			return ctxperm.Answer{}, err
		}
	}
}

// approved asks for the passphrase if there is one.
func (p *prompt) approved() (ctxperm.Answer, error) {
	v := p.settings.Passphrase
	if v == nil {
		return ctxperm.Approve(p.who), nil
	}
	if err := p.app.askPassphrase(v); err != nil {
		return ctxperm.Deny(p.who, err.Error()), nil
	}
	return ctxperm.Approve(p.who), nil
}

// read waits for one line. An unreadable line does not approve.
func (p *prompt) read(ctx context.Context) (string, error) {
	said := make(chan string, 1)
	go func() {
		text, _ := p.in.ReadString('\n')
		said <- text
	}()
	select {
	case text := <-said:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// The end of a prompt, and the help for a question mark.
const (
	askedAgain  = "allow it once? [y/N/d/?] "
	explanation = `  y  the call runs, this once
  n  the call is denied, and the agent is told so; so it is with anything else that is typed
  d  shows what the call would change in files, as they are now
  ?  shows this
`
)

// difference shows what the call would change.
func (p *prompt) difference(ctx context.Context, ask ctxperm.ApprovalRequest) {
	what := wants{patch: ask.Preview}
	if ask.Preview == "" {
		tools, err := tool.NewRegistry(p.app.builtin()...)
		if err == nil {
			what = wantsOf(ctx, p.folders, tools, ask.Tool, ask.ToolDigest, ask.Input)
		}
	}
	what = what.cut(shownLines)
	textStyle(false).patch(p.tty, what.patch)
	switch {
	case what.note != "":
		_, _ = fmt.Fprintf(p.tty, "  %s\n", printable(what.note))
	case what.patch == "":
		_, _ = fmt.Fprintln(p.tty, "  what this call would change cannot be shown before it runs")
	}
}

func question(ask ctxperm.ApprovalRequest) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "\n%s asks to run %s\n", printable(ask.Principal.ID), printable(ask.Tool))
	if ask.Earlier != "" {
		_, _ = fmt.Fprintf(&b, "  again    %s\n", printable(ask.Earlier))
	}
	for _, r := range ask.Reasons {
		_, _ = fmt.Fprintf(&b, "  because  %s\n", printable(withPlace(r.Text, r.At)))
	}
	for _, access := range ask.Accesses {
		_, _ = fmt.Fprintf(&b, "  touches  %s\n", printable(access.String()))
	}
	if ask.Preview != "" {
		_, _ = fmt.Fprintf(&b, "  wants    to change:\n")
		textStyle(false).patch(&b, ask.Preview)
	}
	_, _ = fmt.Fprintf(&b, "  with     %s\n", printable(string(ask.Input)))
	return b.String()
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
)

// approver returns who answers when the policy asks; nil denies every ask.
func (a *app) approver(mode string) (ctxperm.Approver, error) {
	switch mode {
	case "deny", "wait":
		return nil, nil
	case "approve-unsafe":
		who, err := a.person()
		if err != nil {
			return nil, err
		}
		return ctxperm.ApproverFunc(func(context.Context, ctxperm.Ask) (ctxperm.Answer, error) {
			return ctxperm.Approve(who), nil
		}), nil
	case "prompt":
		return a.prompter()
	default:
		return nil, &problem{
			code: exitUsage, what: fmt.Sprintf("--on-ask %q is not one of the ways to answer", mode),
			fix: "valid are deny, wait, prompt, approve-unsafe",
		}
	}
}

// person is who the operating system says runs the command: the journal names
// them as the one who approved.
func (a *app) person() (string, error) {
	who, err := a.user()
	if err == nil && who != "" {
		return who, nil
	}
	return "", &problem{code: exitUsage, what: "nobody can approve: the operating system does not say who you are", fix: "use --on-ask deny"}
}

// prompter asks the person at the terminal.
func (a *app) prompter() (ctxperm.Approver, error) {
	who, err := a.person()
	if err != nil {
		return nil, err
	}
	tty, err := a.tty()
	if err != nil {
		return nil, &problem{code: exitUsage, what: "--on-ask prompt needs a terminal", why: err.Error(), fix: "use --on-ask deny"}
	}
	p := &prompt{who: who, tty: tty, in: bufio.NewReader(tty), turn: host.NewLock(a.host, "remit.prompt"), hold: a.progress.hold}
	return p, nil
}

// prompt asks one question at a time.
type prompt struct {
	who  string
	tty  io.Writer
	in   *bufio.Reader
	turn *host.Lock
	hold func() (release func()) // of the progress line: the question stands where it would
}

// Approve shows everything that would run, and takes nothing but "y" for a yes.
func (p *prompt) Approve(ctx context.Context, ask ctxperm.Ask) (ctxperm.Answer, error) {
	if err := p.turn.Lock(ctx); err != nil {
		return ctxperm.Answer{}, err
	}
	defer p.turn.Unlock()
	defer p.hold()()
	if _, err := fmt.Fprint(p.tty, question(ask)); err != nil {
		return ctxperm.Answer{}, err
	}
	said := make(chan string, 1)
	go func() {
		text, _ := p.in.ReadString('\n') // an unread answer is no yes
		said <- text
	}()
	select {
	case text := <-said:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return ctxperm.Approve(p.who), nil
		}
		return ctxperm.Refuse(p.who, "they said no"), nil
	case <-ctx.Done():
		return ctxperm.Answer{}, context.Cause(ctx)
	}
}

func question(ask ctxperm.Ask) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "\n%s asks to run %s\n", printable(ask.Principal.ID), printable(ask.Tool))
	for _, r := range ask.Reasons {
		_, _ = fmt.Fprintf(&b, "  because  %s\n", printable(withPlace(r.Text, r.At)))
	}
	for _, access := range ask.Accesses {
		_, _ = fmt.Fprintf(&b, "  touches  %s\n", printable(access.String()))
	}
	if ask.Preview != "" {
		_, _ = fmt.Fprintf(&b, "  wants    to change:\n")
		paint(false).patch(&b, ask.Preview)
	}
	_, _ = fmt.Fprintf(&b, "  with     %s\nallow it once? [y/N] ", printable(string(ask.Input)))
	return b.String()
}

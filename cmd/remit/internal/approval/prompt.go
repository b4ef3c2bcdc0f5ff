package approval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// PromptTimeout bounds how long a running call waits for the user at the terminal.
// It equals the time of a pending call.
const PromptTimeout = 24 * time.Hour

// NewPrompt returns an approver that asks the user at the terminal. List is the
// command that lists pending calls.
func NewPrompt(a *cli.App, s Settings, roots []record.Root, list string) (ctxperm.Approver, error) {
	who, err := a.Person()
	if err != nil {
		return nil, err
	}
	tty, err := a.OpenTTY()
	if err != nil {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: "--on-ask prompt needs a terminal", Why: err.Error(), Fix: "use --on-ask wait, and answer at a terminal: " + list + "; or --on-ask deny"}
	}
	p := &prompt{app: a, settings: s, roots: roots, who: who, tty: tty, in: bufio.NewReader(tty), lock: host.NewLock(a.Host, "remit.prompt"), hold: a.Progress.Hold}
	return p, nil
}

// prompt asks for one approval at a time.
type prompt struct {
	app      *cli.App
	settings Settings
	roots    []record.Root

	who  string
	tty  io.Writer
	in   *bufio.Reader
	lock *host.Lock
	hold func() (release func()) // holds the progress line back while the prompt is shown
}

// Approve shows everything that would run. Only "y" approves.
func (p *prompt) Approve(ctx context.Context, ask ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
	if err := p.lock.Lock(ctx); err != nil {
		return ctxperm.Answer{}, err
	}
	defer p.lock.Unlock()
	defer p.hold()()
	if _, err := fmt.Fprint(p.tty, promptText(ask), promptChoices); err != nil {
		return ctxperm.Answer{}, err
	}
	shown := "" // digest of the difference that the person saw
	for {
		text, err := p.read(ctx)
		if err != nil {
			return ctxperm.Answer{}, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			answer, err := p.approved()
			if err != nil || shown == "" || !answer.Approved() || p.difference(ctx, ask).Digest() == shown {
				return answer, err
			}
			_, _ = fmt.Fprintln(p.tty, "nothing was answered: the call would change something else now")
			shown = p.showPreview(ctx, ask)
			if _, err = fmt.Fprint(p.tty, promptChoices); err != nil {
				return ctxperm.Answer{}, err
			}
		case "?":
			help := promptHelp
			if ask.Purpose == perm.PurposeCommit {
				help = commitHelp
			}
			_, err = fmt.Fprint(p.tty, help, promptChoices)
		case "d":
			shown = p.showPreview(ctx, ask)
			_, err = fmt.Fprint(p.tty, promptChoices)
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
	if err := askPassphrase(p.app, v); err != nil {
		return ctxperm.Deny(p.who, err.Error()), nil
	}
	return ctxperm.Approve(p.who), nil
}

// errNoAnswer ends a request at a terminal that closed: that is no rejection.
var errNoAnswer = errors.New("the terminal closed before there was an answer")

// read waits for one line.
func (p *prompt) read(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	said := make(chan line, 1)
	go func() {
		text, err := p.in.ReadString('\n')
		said <- line{text, err}
	}()
	select {
	case l := <-said:
		if l.err != nil && strings.TrimSpace(l.text) == "" {
			return "", errNoAnswer
		}
		return l.text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// The end of a prompt, and the help for a question mark.
const (
	promptChoices = "allow it once? [y/N/d/?] "
	commitHelp    = `  y  what the transaction did stays
  n  it is reverted, and the agent is told so; so it is with anything else that is typed
  d  shows all of it
  ?  shows this
`
	promptHelp = `  y  the call runs, this once
  n  the call is denied, and the agent is told so; so it is with anything else that is typed
  d  shows what the call would change in files, as they are now
  ?  shows this
`
)

// difference returns what the call would change now.
func (p *prompt) difference(ctx context.Context, ask ctxperm.ApprovalRequest) callview.Preview {
	if ask.Preview != "" {
		return callview.Preview{Patch: ask.Preview}
	}
	tools, err := tool.NewRegistry(state.Tools(p.app)...)
	if err != nil {
		return callview.Preview{}
	}
	folders := map[string]callview.Folder{}
	for _, r := range p.roots {
		folders[r.Name] = callview.FolderAt(r)
	}
	return callview.PreviewCall(ctx, folders, tools, ask.Tool, ask.ToolDigest, ask.Input)
}

// showPreview shows what the call would change, and returns the digest of it.
func (p *prompt) showPreview(ctx context.Context, ask ctxperm.ApprovalRequest) (shown string) {
	what := p.difference(ctx, ask)
	shown = what.Digest()
	what = what.Truncate(ShownLines)
	cli.Style(false).Patch(p.tty, what.Patch)
	switch {
	case what.Note != "":
		_, _ = fmt.Fprintf(p.tty, "  %s\n", cli.Printable(what.Note))
	case what.Patch == "":
		_, _ = fmt.Fprintln(p.tty, "  what this call would change cannot be shown before it runs")
	}
	return shown
}

// approvalText returns the difference of a transaction, bounded for a terminal.
func approvalText(text string) string {
	what := callview.Preview{Patch: text}.Truncate(ListedLines)
	if what.Note != "" {
		return what.Patch + what.Note + "; d shows them\n"
	}
	return what.Patch
}

func promptText(ask ctxperm.ApprovalRequest) string {
	var b strings.Builder
	commit := ask.Purpose == perm.PurposeCommit
	if commit {
		_, _ = fmt.Fprintf(&b, "\n%s asks to commit transaction %s: y keeps what it did, n reverts it\n", cli.Printable(ask.Principal.ID), ask.Txn)
	} else {
		_, _ = fmt.Fprintf(&b, "\n%s asks to run %s\n", cli.Printable(ask.Principal.ID), cli.Printable(ask.Tool))
	}
	if ask.Earlier != "" {
		_, _ = fmt.Fprintf(&b, "  again    %s\n", cli.Printable(ask.Earlier))
	}
	for _, r := range ask.Reasons {
		_, _ = fmt.Fprintf(&b, "  because  %s\n", cli.Printable(cli.WithPlace(r.Text, r.At)))
	}
	for _, access := range ask.Accesses {
		_, _ = fmt.Fprintf(&b, "  touches  %s\n", cli.Printable(access.String()))
	}
	if commit {
		if len(ask.Labels) > 0 {
			_, _ = fmt.Fprintf(&b, "  labels   %s\n", cli.Printable(strings.Join(ask.Labels, ", ")))
		}
		_, _ = fmt.Fprintf(&b, "  did:\n")
		cli.Style(false).Patch(&b, approvalText(ask.Preview))
		return b.String()
	}
	if ask.Preview != "" {
		_, _ = fmt.Fprintf(&b, "  wants    to change:\n")
		cli.Style(false).Patch(&b, ask.Preview)
	}
	_, _ = fmt.Fprintf(&b, "  with     %s\n", cli.Printable(string(ask.Input)))
	return b.String()
}

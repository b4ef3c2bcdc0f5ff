package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
)

// Limits of --notify.
const (
	notifyTimeout  = 10 * time.Second // duration of one run of the program
	maxNotifyQueue = 64               // queued calls; the program does not get further ones
	maxNotifyValue = 4 << 10          // bytes of a value in the environment
)

// notifier runs a program of the user for each pending call: one at a time, in
// order, and without delay of the calls. The facts of a call are in the
// environment and on standard input, never in the text of the command.
type notifier struct {
	command string
	env     []string      // environment of this process
	timeout time.Duration // limit of one run
	warn    func(text string)

	done chan struct{}
	stop context.CancelFunc

	mu     sync.Mutex // never held across a wait
	queue  chan notice
	closed bool
}

// notice is the input of the program for one call.
type notice struct {
	env   []string
	input []byte // one JSON object and a line end
}

// newNotifier starts the goroutine that runs the program. It returns nil for an
// empty command.
func newNotifier(command string, env []string, warn func(string)) *notifier {
	if command == "" {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &notifier{command: command, env: env, timeout: notifyTimeout, warn: warn, queue: make(chan notice, maxNotifyQueue), done: make(chan struct{}), stop: stop}
	go func() {
		defer close(n.done)
		for told := range n.queue {
			if err := n.run(ctx, told); err != nil {
				n.warn("--notify: " + err.Error())
			}
		}
	}()
	return n
}

// enqueue queues a call and does not block.
func (n *notifier) enqueue(of *Notices, ask ctxperm.ApprovalRequest) {
	if n == nil {
		return
	}
	told := of.notice(ask)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	select {
	case n.queue <- told:
	default:
		n.warn("--notify: not told of call " + ask.Call + ": the program is behind by " + fmt.Sprint(maxNotifyQueue) + " calls")
	}
}

// Close waits for the queued calls, at most as long as one run may take. Then
// it ends the program. It ignores later calls.
func (n *notifier) Close() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.queue)
	}
	n.mu.Unlock()
	late := time.AfterFunc(n.timeout, n.stop)
	<-n.done
	late.Stop()
	n.stop()
	return nil
}

// run runs the program for one call. It ends the processes that the program
// leaves behind.
func (n *notifier) run(ctx context.Context, told notice) error {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", n.command)
	cmd.Env, cmd.Stdin = append(n.env, told.env...), bytes.NewReader(told.input)
	said := &firstBytes{left: 1 << 10}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	apart(cmd)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not end within %s, and was ended", n.command, n.timeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return errors.New(strings.TrimSuffix(n.command+": "+cli.PlainError(err)+": "+cli.Printable(said.String()), ": "))
	}
	return nil
}

// firstBytes stores the first bytes of a stream.
type firstBytes struct {
	strings.Builder

	left int
}

// Write accepts all of p.
func (f *firstBytes) Write(p []byte) (int, error) {
	kept := p[:min(len(p), f.left)]
	f.left -= len(kept)
	_, _ = f.Builder.Write(kept)
	return len(p), nil
}

// notified is the JSON object that the program reads. It has the keys of remit
// pending --json.
type notified struct {
	Call      string   `json:"call"`
	Txn       string   `json:"txn"`
	Session   string   `json:"session"`
	Principal string   `json:"principal"`
	Tool      string   `json:"tool"`
	Summary   string   `json:"summary"` // shortened arguments
	Access    []string `json:"access"`
	Reasons   []string `json:"reasons"`
	Expires   string   `json:"expires"`
	State     string   `json:"state_folder"`
	Look      string   `json:"look"`
	Approve   string   `json:"approve,omitempty"`
}

// notice returns the input of the program for a call. It escapes characters
// that control a terminal or end a line.
func (n *Notices) notice(ask ctxperm.ApprovalRequest) notice {
	clean := func(s string) string {
		return cli.Clip(cli.Printable(strings.ToValidUTF8(s, "\uFFFD")), maxNotifyValue/4)
	}
	told := notified{
		Call: ask.Call, Txn: ask.Txn, Session: ask.Session, Principal: clean(ask.Principal.ID), Tool: clean(ask.Tool),
		Summary: clean(callview.Arguments(ask.Input, sensitive(n.Tools(), ask.Tool))), Access: []string{}, Reasons: []string{},
		Expires: ask.Expires.UTC().Format(time.RFC3339), State: n.state, Look: n.look(ask.Call),
	}
	if ask.Purpose == perm.PurposeCommit { // the person first looks at the changes
		told.Summary, told.Look = "commit", n.look(ask.Txn)
	} else if ask.Preview == "" {
		told.Approve = n.approve(ask.Call)
	}
	for _, access := range ask.Accesses {
		told.Access = append(told.Access, clean(access.String()))
	}
	for _, r := range ask.Reasons {
		told.Reasons = append(told.Reasons, clean(r.Text))
	}
	var input bytes.Buffer
	cli.NewJSON(&input).Write(told)
	out := notice{input: input.Bytes()}
	for name, value := range map[string]string{
		"CALL": told.Call, "TXN": told.Txn, "SESSION": told.Session, "PRINCIPAL": told.Principal, "TOOL": told.Tool, "SUMMARY": told.Summary,
		"ACCESS": strings.Join(told.Access, ", "), "REASONS": strings.Join(told.Reasons, "; "), "EXPIRES": told.Expires, "STATE": told.State,
		"LOOK": told.Look, "APPROVE": told.Approve,
	} {
		out.env = append(out.env, "REMIT_"+name+"="+cli.Clip(value, maxNotifyValue/4))
	}
	return out
}

// ownEnv returns the environment of this process.
func ownEnv() []string { return os.Environ() }

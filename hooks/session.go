package hooks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// session is one session of a client.
type session struct {
	server *Server
	client Client
	id     string // the client's
	key    string

	opened chan struct{} // closed when the next three are set
	failed error
	space  *Workspace
	agent  *agent.Session

	mu       sync.Mutex // never held across a call of a tool
	prompt   prompt
	txn      *agent.Txn         // of the prompt; nil: no call yet
	open     map[string]*call   // uses that the client works on
	behind   map[*call]bool     // sandboxed commands that run on
	uses     int                // number of uses so far
	placing  int                // uses between the choice of their transaction and open
	leftOn   bool               // an observed command may run on
	waiting  map[string]waiting // calls that wait for an approval, by tool and arguments
	prompted map[string]string  // calls without a reported end that the client asked the person about, by its ID of the use
	asked    map[string]bool    // what waited in a transaction that is committed: nobody can approve that any more
}

// prompt is what a person asked the agent.
type prompt struct {
	id, text string
	given    bool // the ID is the client's
}

// prompts begins a prompt. What is left of the one before ends. A client can
// report the same prompt again, such as when its background work ended.
func (one *session) prompts(ctx context.Context, e Event) error {
	one.mu.Lock()
	again := e.Prompt != "" && e.Prompt == one.prompt.id
	one.mu.Unlock()
	if again {
		return nil
	}
	one.goOn()
	err := one.promptEnds(ctx)
	one.notePrompt(ctx, e)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.prompt = prompt{e.Prompt, e.Text, e.Prompt != ""}
	return err
}

// notePrompt notes what the person said. If it cannot, the prompt goes on, and
// nothing counts as said. The prompt of a sub-agent is of a model. A text that
// begins with a tag can be a notice of the client, with the output of a tool.
func (one *session) notePrompt(ctx context.Context, e Event) {
	text := strings.TrimSpace(e.Text)
	if text == "" || e.Agent != "" || text[0] == '<' {
		return
	}
	if err := one.agent.Heard(context.WithoutCancel(ctx), text); err != nil {
		one.server.tell(fmt.Errorf("what the person said does not count: %w", err))
	}
}

// promptEnds ends the open uses of the prompt, and commits its transaction.
func (one *session) promptEnds(ctx context.Context) error {
	one.late(ctx)
	one.settle(ctx, func(*call) bool { return true }, "the client ended the prompt without a report")
	one.mu.Lock()
	tx := one.txn
	one.txn = nil
	clear(one.prompted)
	for use, w := range one.waiting {
		if w.txn == tx {
			delete(one.waiting, use)
			one.asked[use] = true
		}
	}
	var runOn []*call
	for c := range one.behind {
		if c.txn == tx {
			runOn = append(runOn, c)
		}
	}
	one.mu.Unlock()
	before := one.space.commitWaiting(ctx)
	switch {
	case tx == nil:
		return before
	case len(runOn) == 0:
		return errors.Join(before, one.space.commit(ctx, tx))
	}
	one.server.pending.Go(func() { // commits once they have ended
		for _, c := range runOn {
			<-c.done
		}
		if err := one.space.commit(ctx, tx); err != nil {
			one.server.tell(err)
		}
	})
	return before
}

// sessionEnds ends the prompt and the sandboxed commands that run.
func (one *session) sessionEnds(ctx context.Context) error {
	one.goOn()
	one.mu.Lock()
	for c := range one.behind {
		c.cancel(errSessionEnds)
	}
	one.mu.Unlock()
	err := one.promptEnds(ctx)
	for {
		one.mu.Lock()
		var next *call
		for c := range one.behind {
			next = c
		}
		one.mu.Unlock()
		if next == nil {
			return err
		}
		select {
		case <-next.done:
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// errSessionEnds ends commands in the background.
var errSessionEnds = errors.New("the session of the client ended")

// settle ends open uses whose end the client did not report, and waits for
// their outcomes.
func (one *session) settle(ctx context.Context, which func(*call) bool, why string) {
	one.mu.Lock()
	var all []*call
	for id, c := range one.open {
		if which(c) {
			if delete(one.open, id); !c.behind {
				all = append(all, c)
			}
		}
	}
	one.mu.Unlock()
	for _, c := range all {
		c.end(report{Unknown: why})
		select {
		case <-c.done:
		case <-ctx.Done():
			return
		}
	}
}

// transaction returns the transaction of the prompt.
func (one *session) transaction(ctx context.Context, id string) (*agent.Txn, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.txn != nil {
		return one.txn, nil
	}
	tx, err := one.newTxn(ctx, id)
	if err == nil {
		one.txn = tx
	}
	return tx, err
}

// pause commits what the prompt did so far, so that the client can ask about the
// next call: that one has a transaction of its own, can change the same files,
// and is reverted between the calls before it and those after it. While calls of
// the prompt are at work or wait, their transaction stays open.
func (one *session) pause(ctx context.Context) {
	one.mu.Lock()
	tx, busy := one.txn, one.placing > 1
	for _, c := range one.open {
		busy = busy || c.txn == tx && !c.over
	}
	for _, w := range one.waiting {
		busy = busy || w.txn == tx
	}
	if tx == nil || busy {
		one.mu.Unlock()
		return
	}
	one.txn = nil
	one.mu.Unlock()
	if err := one.space.commit(ctx, tx); err != nil {
		one.server.tell(err)
	}
}

// newTxn begins a transaction of the prompt. The caller holds mu.
func (one *session) newTxn(ctx context.Context, id string) (*agent.Txn, error) {
	switch {
	case id != "" && id != one.prompt.id && one.prompt.given: // the client did not report the start of this one
		one.prompt = prompt{id: id, given: true}
	case id != "" && !one.prompt.given:
		one.prompt.id, one.prompt.given = id, true
	case one.prompt.id == "":
		one.prompt.id = random()
	}
	p := agent.Prompt{Client: one.client.Name, ID: printableID(one.prompt.id), Text: one.prompt.text}
	return one.agent.Begin(context.WithoutCancel(ctx), agent.ForPrompt(p))
}

// random returns an ID for a prompt of a client that gives none.
func random() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// printableID returns an ID as the journal takes it.
func printableID(id string) string {
	if len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	return strings.TrimPrefix(string(canon.SumBytes([]byte(id))), "sha256:")
}

// before decides one use of a tool.
func (one *session) before(ctx context.Context, e Event) Answer {
	u := one.client.useOf(e, one.space.Dir)
	if one.client.Serial { // tools of other servers can run beside others, but not beside an edit
		alone := u.kind == writeKind || u.kind == editKind
		one.settle(ctx, func(c *call) bool { return c.agent == e.Agent && (alone || c.kind != otherKind) }, "the client went on without a report")
	}
	one.late(ctx)
	c := newCall(one, e, u)
	name, effect, err := choose(ctx, one.agent, u, one.space.Sandbox)
	if err != nil {
		return Answer{Verdict: Deny, Reason: "remit cannot decide this call, so it does not run: " + err.Error()}
	}
	if err := one.start(ctx, c, e, name, effect); err != nil {
		return Answer{Verdict: Deny, Reason: "remit cannot decide this call, so it does not run: " + err.Error()}
	}
	select {
	case <-c.ready:
	case <-c.done:
	case <-ctx.Done():
		c.end(report{Unknown: "the client stopped waiting for the decision"})
		return Answer{Verdict: Deny, Reason: "the decision took too long"}
	}
	return one.answer(c, e, name)
}

// answer returns what the client may do.
func (one *session) answer(c *call, e Event, name string) Answer {
	select {
	case <-c.ready: // also if the call has ended since
	default:
		<-c.done
		if c.out.Status != tool.StatusDone {
			return Answer{Verdict: Deny, Reason: refusal(c.out)}
		}
	}
	if c.use.background {
		one.goesOn(c)
	}
	a := Answer{Verdict: Allow, Reason: "allowed by remit"}
	if c.waits {
		a = Answer{Verdict: Ask, Reason: reasons(c)}
	}
	if name == shellName {
		one.server.expect(c)
		a.Input = rewritten(e.Input, one.server.command(c))
	}
	return a
}

// refusal returns why a call does not run. A call that waits for an approval
// continues when the client repeats it. The text names no command that approves
// it, because a model reads it.
func refusal(out tool.Outcome) string {
	if out.Status != tool.StatusPending {
		return out.Text + rejection(out)
	}
	text := "The call did not run: a person must approve it"
	if out.Error != nil && out.Error.Why != "" {
		text += ", because " + out.Error.Why
	}
	return text + ". Tell the person that call " + out.Call + " waits, and that remit pending lists it. When the person says that the call is" +
		" approved, repeat it without changes."
}

// rejection returns what a person said who rejected a call. The text of the
// outcome has only the reasons of the policy.
func rejection(out tool.Outcome) string {
	if out.Status != tool.StatusDenied || out.Stage != "approver" || out.Error == nil || !strings.HasPrefix(out.Error.Why, "refused by ") {
		return ""
	}
	return " It was " + out.Error.Why
}

// start runs the call. It returns once the call is known to this session.
func (one *session) start(ctx context.Context, c *call, e Event, name string, effect perm.Effect) error {
	c.name, c.behind = name, c.use.background && name == shellName
	one.mu.Lock()
	c.alone = effect == perm.Ask || c.behind || one.asked[c.use.digest(name)]
	one.placing++
	one.mu.Unlock()
	if c.alone && c.person {
		one.pause(ctx)
	}
	tx, resume, err := one.place(ctx, e, name, c)
	run, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), callKey{}, c))
	c.txn, c.cancel = tx, cancel
	one.mu.Lock()
	one.placing--
	if err == nil {
		one.uses++
		c.number = one.uses
		if one.open[c.key()] = c; c.behind {
			one.behind[c] = true
		}
	}
	one.mu.Unlock()
	if err != nil {
		cancel(nil)
		return err
	}
	go func() {
		defer one.forget(c)
		defer cancel(nil)
		defer close(c.done)
		defer c.finish()
		c.out, c.err = one.run(run, tx, c, name, resume)
	}()
	return nil
}

// run runs the call to its outcome.
func (one *session) run(ctx context.Context, tx *agent.Txn, c *call, name, resume string) (tool.Outcome, error) {
	defer one.server.forget(c)
	var out tool.Outcome
	var err error
	if resume != "" {
		out, err = tx.Resume(ctx, resume)
	} else {
		out, err = tx.Invoke(ctx, name, tool.Args(c.use.args))
	}
	if out.Status == tool.StatusPending && c.person && !c.begun() { // a command that has run asks about what it changed, which the client cannot show
		out, err = one.delegate(ctx, tx, c, out)
	}
	if out.Status == tool.StatusPending {
		one.mu.Lock()
		one.waiting[c.use.digest(name)] = waiting{tx, out.Call}
		one.mu.Unlock()
		return out, err
	}
	if c.alone || resume != "" {
		one.mu.Lock()
		delete(one.waiting, c.use.digest(name))
		own := tx != one.txn // a command that asked after its run waits in that of the prompt
		one.mu.Unlock()
		if own {
			ended := one.space.commit(ctx, tx)
			if gate := (*agent.CommitError)(nil); errors.As(ended, &gate) {
				out = gate.Outcome(out)
			}
			err = errors.Join(err, ended)
		}
	}
	return out, err
}

// delegate leaves an approval to the client, which asks the person next. The
// record says so: the client does not report the person's answer, and if it is
// no, the tool does not run.
func (one *session) delegate(ctx context.Context, tx *agent.Txn, c *call, out tool.Outcome) (tool.Outcome, error) {
	c.waits = true
	c.asked = out
	by := "the prompt of " + one.client.Title + ", whose answer remit does not see"
	if err := one.space.Runtime.Answer(ctx, agent.Answer{Call: out.Call, Approved: true, By: by, Once: true}); err != nil {
		return out, err
	}
	last, err := tx.Resume(ctx, out.Call)
	if err == nil {
		one.keepAnswer(ctx, c, out.Call, last)
	}
	return last, err
}

// place returns the transaction of a call: that of the prompt, or one of its
// own if the call waits for an approval or goes on in the background. resume is the call that waited.
func (one *session) place(ctx context.Context, e Event, name string, c *call) (tx *agent.Txn, resume string, err error) {
	one.mu.Lock()
	w, again := one.waiting[c.use.digest(name)]
	one.mu.Unlock()
	switch {
	case again:
		return w.txn, w.call, nil
	case c.alone:
		one.mu.Lock()
		defer one.mu.Unlock()
		tx, err = one.newTxn(ctx, e.Prompt)
		return tx, "", err
	}
	tx, err = one.transaction(ctx, e.Prompt)
	return tx, "", err
}

// after ends one use of a tool.
func (one *session) after(ctx context.Context, e Event) Answer {
	c := one.find(e)
	if c == nil {
		one.agreed(ctx, e)
		return Answer{}
	}
	if c.behind {
		return Answer{} // the client reports that it started
	}
	if goesOn(e) && one.goesOn(c) { // a command that took too long
		return Answer{}
	}
	c.end(report{Output: e.Output, Failed: e.Failed})
	select {
	case <-c.done:
	case <-ctx.Done():
		return Answer{Failed: "remit did not finish recording this call in time"}
	}
	one.agreed(ctx, e) // the call can have ended before, and was still found
	if c.out.Status == tool.StatusDone || c.out.Status == tool.StatusHeld || c.shown != nil {
		return Answer{} // a sandboxed command has told its reason itself
	}
	return Answer{Failed: strings.Join(append([]string{c.out.Text}, c.notices...), "\n")}
}

// find returns the open use of an event, and forgets it. Of a client without
// IDs of uses, it is the oldest one of the tool with the same input.
func (one *session) find(e Event) *call {
	one.mu.Lock()
	defer one.mu.Unlock()
	key := e.Use
	if key == "" {
		var found *call
		for k, c := range one.open {
			if c.id != "" || c.agent != e.Agent || c.use.args["tool"] != e.Tool {
				continue
			}
			if found == nil || c.fits(e.Input) && !found.fits(e.Input) || c.fits(e.Input) == found.fits(e.Input) && c.number < found.number {
				found, key = c, k
			}
		}
	}
	c := one.open[key]
	delete(one.open, key)
	return c
}

// key identifies an open use.
func (c *call) key() string {
	if c.id != "" {
		return c.id
	}
	return fmt.Sprintf("\x00%d", c.number)
}

// forget removes an open use.
func (one *session) forget(c *call) {
	one.mu.Lock()
	defer one.mu.Unlock()
	c.over = true
	if delete(one.behind, c); !c.begun() && one.open[c.key()] == c { // the client does not run its tool, and reports no end
		delete(one.open, c.key())
	}
}

// digest identifies a call by its tool and arguments.
func (u use) digest(name string) string {
	raw, err := canon.Marshal(u.args)
	if err != nil {
		return ""
	}
	return callDigest(name, raw)
}

// tools returns the tools that can run a use, the preferred one first.
func (u use) tools(sandbox bool) []string {
	switch u.kind {
	case shellKind:
		if dir, _ := u.args["cwd"].(string); sandbox && !strings.HasPrefix(dir, "/") {
			return []string{shellName, observedName}
		}
		return []string{observedName}
	case writeKind, editKind:
		paths, _ := u.args["paths"].([]string)
		for _, name := range paths {
			if strings.HasPrefix(name, "/") {
				return []string{outsideName}
			}
		}
		if u.kind == writeKind {
			return []string{writeName}
		}
		return []string{editName}
	case readKind:
		return []string{readName}
	case searchKind:
		return []string{searchName}
	case fetchKind:
		return []string{fetchName}
	case innerKind:
		return []string{innerName}
	default:
		return []string{otherName}
	}
}

// reasons returns why the policy asks, for the person.
func reasons(c *call) string {
	if c.asked.Error != nil && c.asked.Error.Why != "" {
		return "remit asks: " + c.asked.Error.Why + covers(c.asked)
	}
	return "remit asks about this call"
}

// command returns the command line that the client runs instead.
func (s *Server) command(c *call) string {
	return shellWord(s.program) + " exec --call " + c.token + " -- " + shellWord(c.use.command)
}

// rewritten replaces the command in the input of a shell.
func rewritten(in json.RawMessage, command string) json.RawMessage {
	var all map[string]any
	if json.Unmarshal(in, &all) != nil {
		return nil
	}
	name := "command"
	if _, ok := all["command"]; !ok {
		name = "cmd"
	}
	all[name] = command
	raw, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return raw
}

// shellWord quotes a text as one word of a POSIX shell.
func shellWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

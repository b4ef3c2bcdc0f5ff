package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// scheme reverts the effects of requests, from the journal alone. It reads the
// item, and sends the compensation if the item still has the version that the
// call left.
type scheme struct{ *Client }

// Name returns the scheme of the changes of this package.
func (scheme) Name() string { return schemeName }

// restoredVersions caches what a revert restored: the new version of the
// service replaces the intended one. Another process, which does not know it,
// finds a conflict, unless the content is the same.
type restoredVersions struct {
	mu   sync.Mutex // never held across a wait
	same map[string]map[effect.Token]effect.Token
}

func (b *restoredVersions) put(resource string, now, meant effect.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.same == nil {
		b.same = map[string]map[effect.Token]effect.Token{}
	}
	b.same[resource] = map[effect.Token]effect.Token{now: meant}
}

func (b *restoredVersions) is(resource string, now, meant effect.Token) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return meant.Known() && b.same[resource][now] == meant
}

func readInverse(c effect.Change) (inv inverse, to Target, err error) {
	if err := canon.Decode(c.Inverse, &inv); err != nil {
		return inv, to, fmt.Errorf("the compensation of the change cannot be read: %w", err)
	}
	to, err = ParseURL(inv.URL)
	return inv, to, err
}

// ask sends a request of a revert, with the credential of its origin: the call
// was permitted to use it. No caller sees the response.
func (s scheme) ask(ctx context.Context, x exchange) (Response, error) {
	if x.header == nil {
		x.header = http.Header{}
	}
	if cr, ok := s.credential(x.to); ok {
		value, err := secretInternals.Read(ctx, s.opts.Secrets, cr.Secret)
		if err != nil {
			return Response{}, err
		}
		if err := cr.add(&x, value); err != nil {
			return Response{}, err
		}
	}
	return s.send(ctx, x)
}

func (s scheme) look(ctx context.Context, item Target) (version, error) {
	resp, err := s.ask(ctx, exchange{method: http.MethodGet, to: item})
	if err != nil {
		return version{}, err
	}
	return versionOf(resp)
}

// findByKey asks the service which item the key of a request made.
func (s scheme) findByKey(ctx context.Context, inv inverse, to Target) (g compensationTarget, there bool, err error) {
	text, err := fill(inv.Undo.Find, func(name string) (string, bool) { return inv.Key, name == "key" })
	if err != nil {
		return g, false, err
	}
	where, err := ParseURL(text)
	if err != nil {
		return g, false, err
	}
	resp, err := s.ask(ctx, exchange{method: http.MethodGet, to: where})
	switch {
	case err != nil:
		return g, false, err
	case resp.Status == http.StatusNotFound:
		return g, false, nil
	case !resp.OK():
		return g, false, fmt.Errorf("%s: the service answered %d", where.Masked(), resp.Status)
	}
	object, there, err := inv.Undo.found(resp.Body)
	if err != nil || !there {
		return g, false, err
	}
	g, err = s.checkRecordable(inv.Undo.goalIn(object, to))
	return g, err == nil, err
}

func (inv inverse) canSeek() bool { return inv.Undo != nil && inv.Undo.Find != "" && inv.Key != "" }

// early reports whether a request whose response was lost may still take
// effect. It is true after the clock was set back, because the time since the
// request is unknown.
func (s scheme) early(inv inverse) bool { return s.host.Now().Sub(inv.Sent) < s.opts.Late }

// Settle has nothing to complete: a request is one step for the service. It
// returns the current version. A version that can still change, or cannot be
// read, is unknown.
func (s scheme) Settle(ctx context.Context, c effect.Change) (effect.Token, error) {
	inv, to, err := readInverse(c)
	if err != nil {
		return "", nil // Plan reports it for this resource; others must continue
	}
	lost := !c.Post.Known()
	switch {
	case c.Post.Same(c.Pre):
		return c.Pre, nil
	case inv.Item != "":
		item, err := ParseURL(inv.Item)
		if err != nil {
			return "", nil
		}
		now, err := s.look(ctx, item)
		if err != nil || lost && !now.is(c.Pre) && !now.holds(inv.Holds) || lost && now.is(c.Pre) && s.early(inv) {
			return "", nil
		}
		return s.named(c, now), nil
	case inv.canSeek():
		g, there, err := s.findByKey(ctx, inv, to)
		switch {
		case err != nil || !there && s.early(inv):
			return "", nil
		case there:
			return s.madeAs(ctx, inv, g), nil
		}
		return unsent, nil
	}
	return "", nil
}

// madeAs returns the token of the item that a key made. It includes the found
// version, if that can be the original one.
func (s scheme) madeAs(ctx context.Context, inv inverse, g compensationTarget) effect.Token {
	now, err := s.look(ctx, g.item)
	if err != nil || !now.there || now.differs(inv.Holds) {
		return sent
	}
	return sent + " " + now.token()
}

// theirs reports whether another client changed the item that a key made. It
// compares with the version found earlier, or else with the sent members.
func theirs(step *effect.Step, c effect.Change, inv inverse, now version) bool {
	_, found, known := strings.Cut(string(c.Post), string(sent)+" ")
	switch {
	case known && !now.is(effect.Token(found)):
		step.Plan, step.Why = effect.Conflict, changedSince
	case !known && now.differs(inv.Holds):
		step.Plan, step.Why = effect.Unknown, otherThanSent
	default:
		return false
	}
	return true
}

const (
	changedSince  = "another client changed it after the call"
	otherThanSent = "the response was lost, and the item differs from what the request sent; another client may have changed it; check the service"
)

// named returns the token of the current version, in the form of the change.
func (s scheme) named(c effect.Change, now version) effect.Token {
	for _, known := range []effect.Token{c.Post, c.Pre} {
		if s.same(c.Resource, now, known) {
			return known
		}
	}
	return now.token()
}

func (s scheme) same(resource string, now version, meant effect.Token) bool {
	return now.is(meant) || s.back.is(resource, now.token(), meant)
}

// Plan reads the item of each change, newest first, and sends no request with
// an effect.
func (s scheme) Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (steps []effect.Step, _ []journal.Blob, _ error) {
	made := map[string]bool{} // URLs of requests with a later change of the call for their effect
	for _, c := range slices.Backward(changes) {
		step := effect.Step{Of: []int{c.N}, Change: effect.Change{Scheme: schemeName, Resource: c.Resource, Pre: c.Post}}
		inv, to, err := readInverse(c)
		switch {
		case err != nil:
			step.Plan, step.Why = effect.Failed, err.Error()
		case c.Post.Same(c.Pre):
			step.Plan, step.Why = effect.Already, "the request had no effect"
		case inv.Undo == nil:
			step.Plan, step.Why = noCompensation(c, inv)
		case inv.Item == "" && made[inv.URL+inv.Key]:
			step.Plan, step.Why = effect.Already, "a separate change reverts what it created"
		default:
			s.plan(ctx, &step, c, inv, to)
			made[inv.URL+inv.Key] = made[inv.URL+inv.Key] || inv.Made
		}
		if step.Plan == effect.Restored && inv.Undo.Before {
			step.Change.Blobs = c.Blobs
		}
		steps = append(steps, step)
	}
	return steps, nil, nil
}

// Keeps returns false: a revert stores nothing of what it displaces at the
// service.
func (scheme) Keeps(effect.Step) bool { return false }

func noCompensation(c effect.Change, inv inverse) (effect.Outcome, string) {
	if !c.Post.Known() {
		return effect.Unknown, "the effect of the " + inv.Method + " is unknown, and it has no compensation; check the service"
	}
	return effect.Failed, "a " + inv.Method + " was sent, and has no compensation"
}

// plan judges one change that has a compensation.
func (s scheme) plan(ctx context.Context, step *effect.Step, c effect.Change, inv inverse, to Target) {
	var g compensationTarget
	var err error
	ours := false
	switch {
	case inv.Item != "":
		g, err = inv.goal()
	case inv.canSeek():
		if g, ours, err = s.findByKey(ctx, inv, to); err == nil && !ours {
			step.Plan, step.Why = s.missing(inv)
			return
		}
	case inv.Again != nil:
		s.counter(step, c, inv, nil, c.Pre)
		step.Why = "asks the service by sending the same key again"
		return
	default:
		step.Plan, step.Why = effect.Unknown, "the answer was lost, and the service cannot be asked what the request made; look there"
		return
	}
	var now version
	if err == nil {
		now, err = s.look(ctx, g.item)
	}
	if err != nil {
		step.Plan, step.Why = effect.Failed, "the service cannot be asked: "+err.Error()
		if !c.Post.Known() {
			step.Plan = effect.Unknown
		}
		return
	}
	step.Change.Pre = s.named(c, now)
	switch {
	case ours && theirs(step, c, inv, now):
	case ours, !c.Post.Known() && now.holds(inv.Holds) && !now.is(c.Pre):
		s.counter(step, c, inv, &g, s.before(c))
		step.Change.Pre = now.token()
	case s.same(c.Resource, now, c.Post):
		s.counter(step, c, inv, &g, c.Pre)
		step.Change.Pre = now.token()
		if !now.strong() && now.there {
			step.Why = "the service names no version to check against, so that the check may race"
		}
	case s.same(c.Resource, now, c.Pre):
		if step.Plan, step.Why = effect.Already, ""; !c.Post.Known() {
			step.Plan, step.Why = s.missing(inv)
		}
	case !c.Post.Known():
		step.Plan, step.Why = effect.Unknown, "the response was lost, so it is unknown whether the call created the current item"
	default:
		step.Plan, step.Why = effect.Conflict, changedSince
	}
}

// before returns the version that a revert restores.
func (scheme) before(c effect.Change) effect.Token {
	if c.Pre == unsent {
		return effect.Absent
	}
	return c.Pre
}

// missing judges a missing effect of a request whose response was lost.
func (s scheme) missing(inv inverse) (effect.Outcome, string) {
	if s.early(inv) {
		return effect.Unknown, fmt.Sprintf("it does not exist and may still appear; revert the call again %s after the request", s.opts.Late)
	}
	return effect.Already, "it is not there"
}

// counter creates the request that reverts a change. If g is nil, a request
// with the same key finds the target.
func (s scheme) counter(step *effect.Step, c effect.Change, inv inverse, g *compensationTarget, post effect.Token) {
	u := inv.Undo
	headers := map[string]string{}
	for name, value := range u.Headers {
		headers[name] = value
	}
	will := &replayRequest{Method: u.method(), Header: headers, Body: u.Body}
	kind := strings.ToLower(will.Method)
	if u.Before && c.Pre == effect.Absent { // nothing to send
		will.Method, will.Body, kind = http.MethodDelete, nil, "delete"
	}
	if u.Before && inv.Media != "" && will.Method != http.MethodDelete {
		will.Header["Content-Type"] = inv.Media
	} else if len(will.Body) > 0 && will.Header["Content-Type"] == "" {
		will.Header["Content-Type"] = "application/json"
	}
	back := inverse{Method: will.Method, URL: inv.URL, Key: inv.Key, Sent: inv.Sent, Will: will}
	if g != nil {
		back.Item, back.Back = g.item.String(), g.back.String()
	} else {
		back.Again, back.Undo, back.Holds = inv.Again, u, inv.Holds
	}
	raw, err := canon.Marshal(back)
	if err != nil {
		step.Plan, step.Why = effect.Failed, err.Error()
		return
	}
	step.Plan = effect.Restored
	step.Change = effect.Change{N: c.N, Scheme: schemeName, Resource: c.Resource, Kind: kind, Pre: step.Change.Pre, Post: post, Inverse: raw}
}

// Apply sends one planned request, only if the item still has the planned
// version.
func (s scheme) Apply(ctx context.Context, step effect.Step, keep journal.ContentStore) effect.Result {
	res := effect.Result{Resource: step.Change.Resource, Outcome: effect.Failed}
	fail := func(o effect.Outcome, why string) effect.Result {
		res.Outcome, res.Why = o, why
		return res
	}
	inv, to, err := readInverse(step.Change)
	if err != nil || inv.Will == nil {
		return fail(effect.Failed, "the step cannot be read")
	}
	g, err := s.target(ctx, inv, to)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return fail(effect.Already, err.Error())
	case err != nil:
		return fail(effect.Unknown, err.Error())
	}
	now, err := s.look(ctx, g.item)
	if err != nil {
		return fail(effect.Failed, "the service cannot be asked: "+err.Error())
	}
	if inv.Again == nil && !s.same(step.Change.Resource, now, step.Change.Pre) {
		res.Now = now.token()
		return fail(effect.Conflict, "it changed after the revert was planned; revert the call again")
	}
	if inv.Again != nil && now.differs(inv.Holds) {
		res.Now = now.token()
		return fail(effect.Unknown, otherThanSent)
	}
	x, err := s.request(ctx, step, inv, g, now, keep)
	if err != nil {
		return fail(effect.Failed, err.Error())
	}
	resp, sendErr := s.ask(ctx, x)
	after, lookErr := s.look(ctx, g.item)
	if lookErr == nil {
		res.Now = after.token()
	}
	return s.judge(step, inv, resp, sendErr, after, lookErr, res)
}

// refusedError states that the service refused the repeated request, so it
// never had an effect.
type refusedError struct{ status int }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the service refuses the request: it answered %d", e.status)
}

// target returns the target of a revert. If only a repeated key can tell, it
// sends that.
func (s scheme) target(ctx context.Context, inv inverse, to Target) (compensationTarget, error) {
	if inv.Item != "" {
		return inv.goal()
	}
	if inv.Again == nil || inv.Undo == nil {
		return compensationTarget{}, errors.New("nothing tells what the request made")
	}
	where, err := ParseURL(inv.Again.URL)
	if err != nil {
		return compensationTarget{}, err
	}
	x := exchange{method: inv.Again.Method, to: where, header: header(inv.Again.Header), body: inv.Again.Body}
	x.header.Set("Idempotency-Key", inv.Key)
	resp, err := s.ask(ctx, x)
	switch {
	case err != nil:
		return compensationTarget{}, fmt.Errorf("the service did not answer to its key: %w", err)
	case resp.Status >= 400 && resp.Status < 500 && resp.Status != http.StatusConflict && resp.Status != http.StatusTooManyRequests && resp.Status != http.StatusRequestTimeout:
		return compensationTarget{}, &refusedError{resp.Status}
	case !resp.OK():
		return compensationTarget{}, fmt.Errorf("the service answered %d to its key", resp.Status)
	}
	return s.checkRecordable(inv.Undo.goalOf(resp.Body, to))
}

func header(in map[string]string) http.Header {
	out := http.Header{}
	for name, value := range in {
		out.Set(name, value)
	}
	return out
}

func (s scheme) request(ctx context.Context, step effect.Step, inv inverse, g compensationTarget, now version, keep journal.ContentStore) (exchange, error) {
	x := exchange{method: inv.Will.Method, to: g.back, header: header(inv.Will.Header), body: inv.Will.Body}
	switch {
	case now.strong():
		x.header.Set("If-Match", now.etag)
	case !now.there && x.method == http.MethodPut:
		x.header.Set("If-None-Match", "*")
	}
	if len(step.Change.Blobs) == 0 || x.method == http.MethodDelete {
		return x, nil
	}
	r, err := keep.OpenContent(ctx, step.Change.Blobs[0])
	if err != nil {
		return x, fmt.Errorf("what was there before cannot be read: %w", err)
	}
	var content bytes.Buffer
	_, err = io.Copy(&content, r)
	x.body = content.Bytes()
	return x, errors.Join(err, r.Close())
}

// judge determines the result of a revert from the version after it.
func (s scheme) judge(step effect.Step, inv inverse, resp Response, sendErr error, after version, lookErr error, res effect.Result) effect.Result {
	goal := step.Change.Post
	reached := lookErr == nil && (after.is(goal) || goal == unsent && !after.there)
	switch {
	case reached:
		res.Outcome = effect.Restored
	case sendErr != nil || lookErr != nil:
		res.Outcome, res.Why = effect.Unknown, "the outcome of the compensation is unknown: "+errors.Join(sendErr, lookErr).Error()
		var failed *sendError
		if lookErr == nil && errors.As(sendErr, &failed) && !failed.sent {
			res.Outcome = effect.Failed
		}
	case resp.Status == http.StatusPreconditionFailed || resp.Status == http.StatusConflict:
		res.Outcome, res.Why = effect.Conflict, "the item changed concurrently"
	case !resp.OK():
		res.Outcome, res.Why = effect.Failed, fmt.Sprintf("the service refused the compensation: it answered %d", resp.Status)
	case inv.Will.Method == http.MethodDelete || !after.there || after.is(step.Change.Pre):
		res.Outcome, res.Why = effect.Failed, "the service accepted the compensation, but the item is not reverted"
	default: // restored, with a new version of the service
		res.Outcome = effect.Restored
		if goal != effect.Absent && goal != unsent {
			s.back.put(step.Change.Resource, after.token(), goal)
		}
	}
	return res
}

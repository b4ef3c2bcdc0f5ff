package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// errConflict states that another client changed the item concurrently, and
// that the request had no effect.
var errConflict = errors.New("the item changed concurrently")

// errOutcomeUnknown states that it is unknown whether a request had its effect.
var errOutcomeUnknown = errors.New("the request was sent, and its response was lost")

// effect sends a request that can change something. In this order, "=>" being a
// barrier:
//
//	authorize; look at the item, and keep what it was; RecordChange(what is sent, pre, compensation)
//	=> send, only if the item still is what was looked at (If-Match, If-None-Match)
//	   look at what is there now; for what the answer names: RecordChange(item, compensation) =>
//
// A lost response leaves the version unknown. Revert and recovery ask the
// service.
func (s *outgoingRequest) effect(ctx context.Context) (Response, error) {
	e, err := s.prepare(ctx)
	if err != nil {
		return Response{}, err
	}
	defer e.permit.End()
	host := s.call.Config().Recorder.Host()
	if err := host.Point(ctx, "web.send"); err != nil {
		e.nothing()
		return Response{}, err
	}
	resp, err := s.send(ctx, e.x)
	if perr := host.Point(ctx, "web.sent"); perr != nil {
		return Response{}, perr
	}
	if err != nil {
		var failed *sendError
		if errors.As(err, &failed) && !failed.sent {
			e.nothing()
			return Response{}, err
		}
		return Response{}, fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	}
	resp = s.clean(resp)
	return resp, e.settle(ctx, resp)
}

// maxMembers bounds the stored members of a body, which identify it later.
const maxMembers = 256

// recordedEffect is an effect whose record is durable.
type recordedEffect struct {
	*outgoingRequest
	permit ctxperm.Permit
	x      exchange
	n      int // number of its change
	pre    effect.Token
	item   *Target // nil: unknown before the response
	back   Target  // set with item
	inv    inverse
}

func (s *outgoingRequest) prepare(ctx context.Context) (e *recordedEffect, err error) {
	host := s.call.Config().Recorder.Host()
	e = &recordedEffect{outgoingRequest: s, pre: unsent, inv: inverse{
		Method: s.req.Method, URL: s.to.resource.String(), Key: s.req.Key, Sent: host.Now(), Undo: s.req.Compensation,
	}}
	e.x = exchange{method: s.req.Method, to: s.to, header: s.header.Clone(), body: s.req.Body}
	if u := s.req.Compensation; u != nil && !u.open() {
		g, err := u.goalIn(nil, s.to)
		if err != nil {
			return nil, err
		}
		e.item, e.back = &g.item, g.back
		e.inv.Item, e.inv.Back = g.item.String(), u.URL
	}
	if err := s.authorize(ctx, e); err != nil {
		return nil, err
	}
	permit := e.permit
	defer func() {
		if err != nil {
			permit.End()
		}
	}()
	var blobs []journal.Blob
	if e.item != nil {
		if blobs, err = e.look(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.addCredential(ctx, &e.x); err != nil {
		return nil, err
	}
	return e, e.intend(ctx, blobs)
}

// authorize authorizes the request, and the known reads and compensation. An
// effect that could not be reverted for lack of an access must not begin.
func (s *outgoingRequest) authorize(ctx context.Context, e *recordedEffect) (err error) {
	accesses := []perm.ResourceAccess{connect(s.req.Method, s.to)}
	if e.item != nil {
		accesses = append(accesses, connect(http.MethodGet, *e.item), connect(s.req.Compensation.method(), e.back))
	}
	if e.permit, err = ctxperm.Authorize(ctx, s.tc, accesses...); err != nil {
		return err
	}
	if e.item == nil {
		return nil // other calls may use the same URL meanwhile
	}
	if err = e.permit.LockResource(ctx, e.item.resource.String()); err == nil {
		return nil
	}
	e.permit.End()
	return err
}

// look reads the item before the effect, stores it if a revert needs it, and
// binds the request to it.
func (e *recordedEffect) look(ctx context.Context) ([]journal.Blob, error) {
	for _, c := range e.call.Changes() {
		if c.Resource == e.item.resource.String() {
			return nil, fmt.Errorf("%w request: the call has changed %s already; one call changes a thing once", ctxperm.ErrInvalid, e.item.Masked())
		}
	}
	now, err := e.version(ctx, *e.item)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, so the call could not be reverted: %w", e.item.Masked(), err)
	}
	e.pre = now.token()
	if e.item.resource == e.to.resource {
		switch {
		case now.strong():
			e.x.header.Set("If-Match", now.etag)
		case !now.there && e.req.Method == http.MethodPut:
			e.x.header.Set("If-None-Match", "*")
		}
	}
	if !e.req.Compensation.Before || !now.there {
		return nil, nil
	}
	if e.call.Scrub(string(now.body)) != string(now.body) {
		return nil, fmt.Errorf("%s contains a secret, which the journal must not store for the compensation", e.item.Masked())
	}
	e.inv.Media = now.media
	blob, err := e.permit.StoreContent(ctx, bytes.NewReader(now.body))
	return []journal.Blob{blob}, err
}

// version reads the version of an item for the call.
func (s *outgoingRequest) version(ctx context.Context, item Target) (version, error) {
	x := exchange{method: http.MethodGet, to: item, header: http.Header{"Accept": s.header.Values("Accept")}}
	if err := s.addCredential(ctx, &x); err != nil {
		return version{}, err
	}
	resp, err := s.send(ctx, x)
	if err != nil {
		return version{}, err
	}
	return versionOf(resp)
}

// intend makes the change durable. An item without a known URL has the name of
// its operation, so that requests to one collection do not block each other.
func (e *recordedEffect) intend(ctx context.Context, blobs []journal.Blob) error {
	if u := e.req.Compensation; u != nil && u.Replays && e.req.Key != "" && u.open() {
		e.inv.Again = &replayRequest{Method: e.req.Method, URL: e.to.String(), Header: e.req.Headers, Body: e.req.Body}
	}
	change := effect.Change{Scheme: schemeName, Kind: strings.ToLower(e.req.Method), Pre: e.pre}
	made := e.item == nil && e.req.Compensation != nil
	if sent := members(e.req.Body); len(sent) <= maxMembers && (made || e.item != nil && e.item.resource == e.to.resource) {
		e.inv.Holds = sent
	}
	if e.item != nil {
		change.Resource = e.item.resource.String()
	} else {
		key := strings.TrimPrefix(e.call.Config().Key, "sha256:")
		change.Resource = fmt.Sprintf("%s#%.12s.%d", e.to.resource, key, len(e.call.Changes())+1)
	}
	for _, b := range blobs {
		change.Blobs = append(change.Blobs, b.Ref())
	}
	n, err := e.record(ctx, change, e.inv, blobs)
	e.n = n
	return err
}

func (e *recordedEffect) record(ctx context.Context, c effect.Change, inv inverse, blobs []journal.Blob) (int, error) {
	raw, err := canon.Marshal(inv)
	if err != nil {
		return 0, err
	}
	c.Inverse = raw
	call := contexts.PermitCall(e.permit)
	if call == nil {
		return 0, ctxperm.ErrClosed
	}
	out, err := call.Intend(ctx, []effect.Change{c}, blobs)
	if err != nil {
		return 0, err
	}
	return out[0].N, nil
}

// nothing records that the request had no effect.
func (e *recordedEffect) nothing() { e.permit.RecordVersions(e.n, e.pre) }

// settle records the version that the effect left.
func (e *recordedEffect) settle(ctx context.Context, resp Response) error {
	ctx = context.WithoutCancel(ctx) // half a record is worse than a late one
	switch {
	case resp.Status == http.StatusPreconditionFailed && e.x.header.Get("If-Match")+e.x.header.Get("If-None-Match") != "":
		e.nothing()
		return fmt.Errorf("%s %s: %w", e.req.Method, e.to.Masked(), errConflict)
	case resp.Status >= 400 && resp.Status < 500 && resp.Status != http.StatusRequestTimeout:
		e.nothing() // the service refused it
		return nil
	case resp.Status >= 500 || resp.Status == http.StatusRequestTimeout:
		if e.req.Compensation == nil {
			return nil // the change states that the version is unknown
		}
		return fmt.Errorf("%s %s: %w: the service answered %d", e.req.Method, e.to.Masked(), errOutcomeUnknown, resp.Status)
	case e.req.Compensation == nil:
		e.permit.RecordVersions(e.n, sent)
		return nil
	case e.item == nil:
		return e.settleMade(ctx, resp)
	}
	now, err := e.after(ctx, *e.item, resp)
	if err == nil {
		e.permit.RecordVersions(e.n, now)
	}
	return err
}

// settleMade records the item that the response names.
func (e *recordedEffect) settleMade(ctx context.Context, resp Response) error {
	g, err := e.req.Compensation.goalOf(resp.Body, e.to)
	if err != nil {
		return fmt.Errorf("%s %s: %w: the answer does not tell what was made: %w", e.req.Method, e.to.Masked(), errOutcomeUnknown, err)
	}
	now, err := e.after(ctx, g.item, resp)
	if err != nil {
		return err
	}
	inv := e.inv
	inv.Item, inv.Back, inv.Made, inv.Again, inv.Holds = g.item.String(), g.back.String(), true, nil, nil
	made := effect.Change{Scheme: schemeName, Resource: g.item.resource.String(), Kind: "create", Pre: effect.Absent, Post: now}
	if _, err := e.record(ctx, made, inv, nil); err != nil {
		return fmt.Errorf("%w: what it made could not be written down: %w", errOutcomeUnknown, err)
	}
	e.permit.RecordVersions(e.n, sent)
	return nil
}

// after returns the version that the effect left. If the response has an ETag
// and the item now has another one, another client has changed the item since.
// Then the version is that of the response.
func (e *recordedEffect) after(ctx context.Context, item Target, resp Response) (effect.Token, error) {
	now, err := e.version(ctx, item)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s cannot be looked at: %w", e.req.Method, e.to.Masked(), errOutcomeUnknown, item.Masked(), err)
	}
	opaque := func(etag string) string { return strings.TrimPrefix(etag, "W/") }
	if ours := resp.Header.Get("Etag"); ours != "" && opaque(ours) != opaque(now.etag) && now.etag != "" && e.req.Method != http.MethodDelete {
		return effect.Token("answered etag " + ours), nil
	}
	return now.token(), nil
}

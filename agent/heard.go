package agent

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/urlscan"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// maxUserURLs bounds the URLs that a session and its delegations can be given,
// and the number of their calls that are told apart. URLs beyond it count as
// not user-provided.
const maxUserURLs = 1 << 14

// Heard adds all URLs in the texts, such as a prompt, that the user named.
// Policies can restrict calls to these URLs. Session.Heard adds later
// ones.
func Heard(texts ...string) SessionOption {
	return func(c *sessionConfig) { c.userURLs = append(c.userURLs, texts...) }
}

// Heard adds all URLs in the texts that the user named later. The journal
// keeps only their digests. URLs in the result of a call are added without it.
// Pass only texts of people: URLs that the model wrote are not user-provided.
func (s *Session) Heard(ctx context.Context, texts ...string) error {
	body := &record.Heard{}
	named := map[string]bool{}
	for _, text := range texts {
		for url := range urlscan.Read(text) {
			for _, digest := range s.state.userURLs.digests(url) {
				if !named[digest] {
					named[digest] = true
					body.URLs = append(body.URLs, digest)
				}
			}
		}
	}
	switch {
	case len(body.URLs) == 0:
		return nil
	case len(body.URLs) > maxUserURLs:
		return fmt.Errorf("the texts name more than the %d URLs that a session can be given: %w", maxUserURLs/2, tool.ErrInvalid)
	}
	// No barrier: a lost record counts as not user-provided.
	rec := revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id)
	if err := rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: body}}}); err != nil {
		return fmt.Errorf("agent: give: %w", err)
	}
	return nil
}

// userURLs holds which URLs a session and its delegations were given. These
// sessions share the URLs, because they exchange messages. It is a fold of
// their records: each look reads the records since the last one. So it is the
// same in every process, and omits erased records. It holds only digests.
type userURLs struct {
	journal journal.Journal
	first   string // session

	mu     sync.Mutex // never held across a wait
	pos    int64
	family map[string]bool
	urls   map[string]string          // whole URLs and resources; the call that gave it, "" for a person
	own    map[string]bool            // URLs that calls wrote and that were not given: reading them again gives nothing
	named  map[string]map[string]bool // URLs that a call in flight names; nil: more than the bound
	full   bool                       // own does not hold all that was written
}

func newUserURLs(j journal.Journal, session string) *userURLs {
	return &userURLs{
		journal: j, first: session, family: map[string]bool{session: true},
		urls: map[string]string{}, own: map[string]bool{}, named: map[string]map[string]bool{},
	}
}

// digests returns the digests of a canonical URL and of its resource. They are
// specific to the family of sessions, so one family cannot find out the URLs of
// another.
func (g *userURLs) digests(url string) [2]string {
	return [2]string{g.digest("url", url), g.digest("resource", urlscan.Resource(url))}
}

func (g *userURLs) digest(what, text string) string {
	return string(canon.Sum("remit/user-provided/v1", []byte(g.first), []byte(what), []byte(text)))
}

// look reads the new records, and returns a function that reports whether a URL
// or a resource was given.
func (g *userURLs) look(ctx context.Context) (has func(text string, resource bool) bool, err error) {
	after, err := g.from(ctx)
	if err != nil {
		return nil, fmt.Errorf("which URLs the session was given: %w", err)
	}
	kinds := []record.Kind{
		record.KindDelegated, record.KindHeard, record.KindStarted, record.KindDone, record.KindFailed, record.KindUnknown, record.KindVerified, record.KindErased,
	}
	for e, err := range g.journal.Entries(ctx, journal.Query{Kinds: kinds, After: after}) {
		if err == nil {
			err = g.note(e)
		}
		if err != nil {
			return nil, fmt.Errorf("which URLs the session was given: %w", err)
		}
	}
	return g.has, nil
}

// from returns the position up to which the journal was read. Entries older
// than the session do not belong to it.
func (g *userURLs) from(ctx context.Context) (after int64, err error) {
	g.mu.Lock()
	after = g.pos
	g.mu.Unlock()
	if after > 0 {
		return after, nil
	}
	for e, err := range g.journal.Entries(ctx, journal.Query{Session: g.first, Limit: 1}) {
		if err != nil {
			return 0, err
		}
		after = e.Pos
	}
	return after, nil
}

func (g *userURLs) has(text string, resource bool) bool {
	what := "url"
	if resource {
		what = "resource"
	}
	digest := g.digest(what, text)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.urls[digest]
	return ok
}

// note processes an entry, once.
func (g *userURLs) note(e record.Entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Pos <= g.pos {
		return nil
	}
	if !g.family[e.Header.Session] || e.Erased != "" {
		g.pos = e.Pos
		return nil
	}
	rec, err := record.Unseal(e)
	if err != nil {
		return err
	}
	g.pos = e.Pos
	g.record(rec.Call, rec.Body)
	return nil
}

// record processes one record. The caller holds the lock.
func (g *userURLs) record(call string, body record.Body) {
	switch b := body.(type) {
	case *record.Delegated:
		g.family[b.To] = true
	case *record.Heard:
		for _, digest := range b.URLs {
			g.add(digest, "")
		}
	case *record.Started:
		g.started(call, b)
	case *record.Done:
		g.result(call, b)
		delete(g.named, call)
	case *record.Failed, *record.Unknown:
		delete(g.named, call)
	case *record.Verified:
		if !b.OK { // its result was not returned
			g.forget(call)
		}
	case *record.Erased:
		g.forget(call)
		delete(g.named, call)
	}
}

// started notes the URLs that a call names, and those that it can have written
// for a later call to find.
func (g *userURLs) started(call string, b *record.Started) {
	names := map[string]bool{}
	for text := range urlscan.Texts(b.Input) {
		for url := range urlscan.Written(text) {
			digest := g.digest("url", url)
			if _, known := g.urls[digest]; known || g.own[digest] || b.Class == effect.Pure {
				continue
			}
			if g.full = g.full || len(g.own) >= maxUserURLs; g.full { // no result gives URLs from here on
				return
			}
			g.own[digest] = true
		}
		for url := range urlscan.Bare(text) {
			if names[g.digest("url", url)] = true; len(names) > maxUserURLs {
				g.named[call] = nil
				return
			}
		}
	}
	g.named[call] = names
}

// result adds the URLs that the delivered result of a call contains and the
// call did not name.
func (g *userURLs) result(call string, b *record.Done) {
	output := b.Output
	if b.Delivered != nil {
		output = b.Delivered
	}
	var r tool.Result
	names, known := g.named[call]
	if g.full || !known || names == nil || b.Undelivered != "" || canon.Decode(output, &r) != nil {
		return
	}
	for url := range urlsOf(r) {
		digests := g.digests(url)
		if names[digests[0]] || g.own[digests[0]] {
			continue
		}
		for _, digest := range digests {
			g.add(digest, call)
		}
	}
}

func (g *userURLs) add(digest, call string) {
	_, known := g.urls[digest]
	switch {
	case known && call != "", !known && len(g.urls) >= 2*maxUserURLs:
	default:
		g.urls[digest] = call
	}
}

func (g *userURLs) forget(call string) {
	for digest, by := range g.urls {
		if by == call {
			delete(g.urls, digest)
		}
	}
}

// urlsOf yields the URLs that a model reads in a result.
func urlsOf(r tool.Result) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text := range shownTexts(r) {
			for url := range urlscan.Read(text) {
				if !yield(url) {
					return
				}
			}
		}
	}
}

func shownTexts(r tool.Result) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(r.Text) {
			return
		}
		for text := range urlscan.Texts(r.JSON) {
			if !yield(text) {
				return
			}
		}
		for _, p := range r.Parts {
			if strings.HasPrefix(p.MediaType, "text/") && !yield(string(p.Data)) {
				return
			}
		}
		for _, s := range r.Sources {
			if !yield(s.Title) || !yield(s.URL) {
				return
			}
		}
	}
}

// UserProvided returns a function that reports which URLs the user provided.
func (c *txnFacts) UserProvided(ctx context.Context) (has func(text string, resource bool) bool, err error) {
	return c.session.state.userURLs.look(ctx)
}

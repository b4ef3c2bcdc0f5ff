package agent

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/origin"
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

// Heard notes what a person said, such as a prompt. Policies can restrict calls
// to the URLs and the values in it. Session.Heard notes later texts.
func Heard(texts ...string) SessionOption {
	return func(c *sessionConfig) { c.heard = append(c.heard, texts...) }
}

// Heard notes what a person said later. The journal keeps only digests of its
// URLs and words. What results of calls contain is known without it. Pass only
// texts of people, and not what the model wrote or what a person did not read:
// their values are trusted. The texts of a session can have 65,536 words and
// 8,192 URLs.
func (s *Session) Heard(ctx context.Context, texts ...string) error {
	body := &record.Heard{}
	named := map[string]bool{}
	words := 0
	for _, text := range texts {
		for url := range urlscan.Read(text) {
			for _, digest := range s.state.userURLs.digests(url) {
				if !named[digest] {
					named[digest] = true
					body.URLs = append(body.URLs, digest)
				}
			}
		}
		said, accounts := s.state.origins.heard(text)
		body.Accounts = append(body.Accounts, accounts...)
		for _, sentence := range said {
			body.Texts = append(body.Texts, sentence)
			words += len(sentence) / len(origin.Digest{})
		}
	}
	switch {
	case len(body.Texts) == 0 && len(body.URLs) == 0:
		return nil
	case len(body.URLs) > maxUserURLs:
		return fmt.Errorf("the texts name more than the %d URLs that a session can be given: %w", maxUserURLs/2, tool.ErrInvalid)
	case words > origin.MostSaid:
		return fmt.Errorf("the texts have more than the %d words that a session can be told: %w", origin.MostSaid, tool.ErrInvalid)
	}
	// No barrier: after a loss nothing counts as said.
	rec := revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id)
	if err := rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: body}}}); err != nil {
		return fmt.Errorf("agent: heard: %w", err)
	}
	s.state.origins.written([]revert.CallRecord{{Body: body}})
	return nil
}

// noteUserText notes what a person said in a conversation. If it cannot, the
// conversation goes on, and the text does not count as said.
func (s *Session) noteUserText(ctx context.Context, text string) {
	if s.state.from != nil { // delegated: the text can be of a model
		return
	}
	if err := s.Heard(ctx, text); err != nil {
		s.rt.log.Warn("what a person said could not be noted; its values count as made by the model", "session", s.id, "error", err)
	}
}

// userURLs holds which URLs a session and its delegations were given. It holds
// only digests.
type userURLs struct {
	family
	urls  map[string]string          // whole URLs and resources; the call that gave it, "" for a person
	own   map[string]bool            // URLs that calls wrote and that were not given: reading them again gives nothing
	named map[string]map[string]bool // URLs that a call in flight names; nil: more than the bound
	full  bool                       // own does not hold all that was written
}

func newUserURLs(j journal.Journal, session string) *userURLs {
	return &userURLs{
		family: newFamily(j, session, contentKinds()...),
		urls:   map[string]string{}, own: map[string]bool{}, named: map[string]map[string]bool{},
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
	if err := g.read(ctx, g.record, nil); err != nil {
		return nil, fmt.Errorf("which URLs the session was given: %w", err)
	}
	return g.has, nil
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

// record processes one record. The caller holds the lock.
func (g *userURLs) record(call string, body record.Body) {
	switch b := body.(type) {
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

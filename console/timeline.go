package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Limits of one page of the timeline. A page that looked at maxLooked
// transactions ends there, and leads on.
const (
	txnsOnPage = 25
	maxLooked  = 1000

	searchWindow = 20_000 // records that a search for a text reads before it looks at the clock
	searchTime   = 300 * time.Millisecond
)

// filter selects calls of the timeline.
type filter struct {
	Session, Txn, Tool, Outcome, Path, Text string
	Principal                               string
	From, To                                string // as a form has them
	from, to                                time.Time
	skip                                    int // calls of a single transaction that earlier pages show
}

type timelinePage struct {
	filter
	Who      string
	Statuses []string
	Groups   []group
	Next     string // address of the next page
	Newest   string // address of the first page, if this is another one
	Looked   int
	Partial  bool // the page ended before it was full
	Damage   string
}

func number(r *http.Request, name string) int64 {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// idOf returns the ID that an address or a form names. It returns an ID that is
// nowhere for a text that cannot be one: IDs are short and of printable ASCII.
func idOf(v url.Values) string {
	id := v.Get("id")
	if id == "" || len(id) > 256 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "(none)"
	}
	return id
}

func filterOf(q url.Values) filter {
	f := filter{
		Session: q.Get("session"), Txn: q.Get("txn"), Tool: strings.TrimSpace(q.Get("tool")), Outcome: q.Get("outcome"), Path: strings.TrimSpace(q.Get("path")), Text: strings.TrimSpace(q.Get("q")),
		Principal: strings.TrimSpace(q.Get("principal")), From: q.Get("from"), To: q.Get("to"),
	}
	f.from, f.to = timeOf(f.From), timeOf(f.To)
	return f
}

// timeOf parses the value of a field for a time. It returns the zero time for an
// empty or invalid one.
func timeOf(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t
		}
	}
	return time.Time{}
}

func (f filter) address(before int64) string {
	q := url.Values{}
	for name, v := range map[string]string{
		"session": f.Session, "txn": f.Txn, "tool": f.Tool, "outcome": f.Outcome,
		"principal": f.Principal, "path": f.Path, "q": f.Text, "from": f.From, "to": f.To,
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	return "/timeline?" + q.Encode()
}

// calls returns the filter without its text.
func (f filter) calls() callview.Filter {
	return callview.Filter{Tool: f.Tool, Outcome: f.Outcome, Path: f.Path, From: f.from, To: f.to}
}

// narrows reports whether the filter leaves out calls of a transaction.
func (f filter) narrows() bool { return f.Tool+f.Outcome+f.Path+f.Text != "" }

func (c *Console) timeline(r *http.Request) (string, page, error) {
	ctx, f, before := r.Context(), filterOf(r.URL.Query()), number(r, "before")
	head, err := c.newest(ctx)
	if err != nil {
		return "", page{}, err
	}
	f.skip = int(min(number(r, "skip"), 1<<30))
	d := timelinePage{filter: f, Statuses: statuses()}
	if f.Session != "" {
		d.Who = c.principal(ctx, f.Session)
	}
	next, err := c.find(ctx, &d, before)
	if err != nil {
		return "", page{}, err
	}
	if next > 0 {
		d.Next = f.address(next)
	}
	p := page{Title: "Timeline", Place: "timeline", Head: head}
	if before > 0 {
		d.Newest = f.address(0)
	} else {
		p.Live = f.address(0)
	}
	p.Data = d
	return "timeline", p, nil
}

// search collects the transactions of a page.
type search struct {
	filter
	before int64 // position at which the page begins; 0: the newest
	page   *timelinePage
	txns   []*revert.Txn
	boxes  []txnBox
	seen   map[string]bool
	who    map[string]string // principals of sessions
	start  time.Time
}

// by reports whether the principal of a session is the wanted one.
func (s *search) by(ctx context.Context, c *Console, session string) bool {
	if s.Principal == "" {
		return true
	}
	if _, known := s.who[session]; !known {
		s.who[session] = c.principal(ctx, session)
	}
	return strings.Contains(s.who[session], s.Principal)
}

// find adds the transactions of a page. It returns the position at which the
// next page begins, 0 if there is none.
func (c *Console) find(ctx context.Context, d *timelinePage, before int64) (next int64, err error) {
	s := search{filter: d.filter, before: before, page: d, seen: map[string]bool{}, who: map[string]string{}, start: c.Now()}
	q := s.calls().Query()
	q.Session, q.Txn, q.Before = s.Session, s.Txn, before
	if s.Text != "" && s.Path == "" {
		q = searchQuery(q, s.Text)
	}
	if s.Text != "" && s.Path == "" {
		next, err = c.readWindows(ctx, &s, q)
	} else {
		next, err = c.read(ctx, &s, q)
	}
	d.Looked, d.Groups = len(s.seen), grouped(s.txns, s.boxes)
	d.Partial = next > 0 && len(s.txns) < txnsOnPage
	return next, err
}

// readWindows reads records that no index has, in parts: a page of a long journal
// ends after some time, and says where the search continues.
func (c *Console) readWindows(ctx context.Context, s *search, q journal.Query) (next int64, err error) {
	if q.Before == 0 {
		newest, err := c.newest(ctx)
		if err != nil {
			return 0, err
		}
		q.Before = newest + 1
	}
	for start := c.Now(); q.Before > 1; q.Before = q.After + 1 {
		if c.Now().Sub(start) > searchTime {
			return q.Before, nil
		}
		q.After = max(q.Before-1-searchWindow, 0)
		if next, err = c.read(ctx, s, q); next > 0 || err != nil {
			return next, err
		}
	}
	return 0, nil
}

// read adds the transactions that a query finds. It returns the position at which
// the next page begins if the page is full.
func (c *Console) read(ctx context.Context, s *search, q journal.Query) (next int64, err error) {
	for e, err := range c.Runtime.Journal().Entries(ctx, q) {
		if err != nil {
			if e.Pos == 0 {
				return 0, err
			}
			s.page.Damage = err.Error()
			continue
		}
		if e.Header.Txn == "" || s.seen[e.Header.Txn] {
			continue
		}
		if !s.by(ctx, c, e.Header.Session) {
			if c.Now().Sub(s.start) > searchTime {
				return e.Pos, nil // the next page goes on
			}
			continue
		}
		if len(s.txns) == txnsOnPage || len(s.seen) == maxLooked {
			return e.Pos + 1, nil
		}
		s.seen[e.Header.Txn] = true
		if err := c.add(ctx, s, q, e.Header.Txn); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// add adds a transaction if the filter selects a call of it, and no earlier page
// of the search shows it.
func (c *Console) add(ctx context.Context, s *search, q journal.Query, txn string) error {
	if s.before > 0 && !slices.Contains(q.Kinds, record.KindBegun) || s.before > 0 && q.About != nil {
		if shown, err := c.shownBefore(ctx, q, txn, s.before); shown || err != nil {
			return err
		}
	}
	t, err := c.Runtime.Load(ctx, txn)
	if errors.Is(err, record.ErrDamaged) {
		s.page.Damage = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if box, ok := c.selected(ctx, s.filter, t); ok {
		s.txns, s.boxes = append(s.txns, t), append(s.boxes, box)
	}
	return nil
}

// searchQuery returns a query for the records that a search for a text reads:
// what was asked for, what changed, and what came out.
func searchQuery(q journal.Query, text string) journal.Query {
	naming := callview.Filter{Path: text}.Query()
	q.About, q.Kinds = naming.About, append(naming.Kinds, record.KindBegun, record.KindStarted, record.KindDone, record.KindInvalid)
	return q
}

// shownBefore reports whether an earlier page of a search showed a transaction.
func (c *Console) shownBefore(ctx context.Context, q journal.Query, txn string, before int64) (bool, error) {
	q.Session, q.Txn, q.Newest, q.Before, q.After, q.Limit = "", txn, false, 0, before-1, 1
	for _, err := range c.Runtime.Journal().Entries(ctx, q) {
		return err == nil, err
	}
	return false, nil
}

// selected returns a transaction with the calls that a filter selects. ok is
// false if it selects none.
func (c *Console) selected(ctx context.Context, f filter, t *revert.Txn) (box txnBox, ok bool) {
	if !f.calls().SelectsTxn(t) {
		return box, false
	}
	if !f.narrows() {
		return c.boxFrom(ctx, t, f.skip), true
	}
	part := *t
	part.Calls = slices.DeleteFunc(slices.Clone(t.Calls), func(call *revert.Call) bool { return !c.matches(f, t, call) })
	if len(part.Calls) == 0 {
		return box, false
	}
	box = c.boxOf(ctx, t)
	box.Calls = nil
	for _, call := range part.Calls[:min(len(part.Calls), listedCalls)] {
		box.Calls = append(box.Calls, c.lineOf(call))
	}
	box.More, box.Skip = len(t.Calls)-len(box.Calls), 0
	return box, true
}

func (c *Console) matches(f filter, t *revert.Txn, call *revert.Call) bool {
	return f.calls().Selects(call) && (f.Text == "" || c.mentions(t, call, f.Text))
}

// mentions reports whether what a page shows of a call contains a text. It does
// not look at sensitive values, which a search must not confirm.
func (c *Console) mentions(t *revert.Txn, call *revert.Call, text string) bool {
	if t.Prompt != nil && strings.Contains(t.Prompt.Text, text) || strings.Contains(call.Tool.Name, text) || (callview.Filter{Path: text}).Selects(call) {
		return true
	}
	shown := callview.WithoutSensitive(call, c.sensitive(call.Tool.Name))
	a := callview.AttemptOf(shown)
	in := callview.InJSON(text)
	return strings.Contains(string(a.Input), in) || strings.Contains(a.Why, text) || strings.Contains(string(a.Raw), in) || shown.Done != nil && strings.Contains(string(shown.Done.Output), in)
}

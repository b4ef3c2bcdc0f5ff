package filter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/tool"
)

// Usage are what calls use up. A zero member of a bound is none.
type Usage struct {
	Calls  int64
	Time   time.Duration // from a filter's Before to its Ended
	Cost   int64         // in the unit of the program
	Output int64         // bytes that are delivered
}

// Budget bounds what calls use up, of each session and of the whole runtime. What a
// call can use up at most is reserved before it starts, in both at once, so two calls
// that come together cannot both take the last of it; when it has ended, what it did use
// stands. A call that is denied, or waits for approval, uses up nothing; one that is
// held is paid for when it is held.
//
// The model is told when little is left, at the end of a result; what takes the last of
// it, and each call that is refused for it, ends the loop.
type Budget struct {
	Runtime Usage // of all sessions together
	Session Usage // of each session, inside of that

	// EstimateUsage says what a call can use up. Calls is always 1; what is 0 is not reserved, so
	// calls in flight together can go over that bound by what they take. Nil: Time is
	// the tool's own timeout, where it names one, and nothing else.
	EstimateUsage func(f Call) Usage
	// Cost says what a call that has ended did cost; nil: what was reserved.
	Cost func(f Call, o tool.Outcome) int64
	// WarnPercent is how many percent of a bound are left when the model is told; 0 is 20,
	// less is never.
	WarnPercent int
}

// Filter makes the filter "budget", with nothing used up. It returns an error if
// a bound is negative or WarnPercent is more than 100.
func (b Budget) Filter() (Filter, error) {
	for of, bound := range map[string]Usage{"Runtime": b.Runtime, "Session": b.Session} {
		if bound.Calls < 0 || bound.Time < 0 || bound.Cost < 0 || bound.Output < 0 {
			return Filter{}, fmt.Errorf("filter budget: %s: a bound must not be negative", of)
		}
	}
	switch {
	case b.WarnPercent > 100:
		return Filter{}, fmt.Errorf("filter budget: WarnPercent %d: must be at most 100", b.WarnPercent)
	case b.WarnPercent == 0:
		b.WarnPercent = 20
	}
	l := &budgetState{Budget: b}
	return Filter{Name: "budget", Before: l.before, After: l.after, Ended: l.ended}, nil
}

// budgetState is a budget with what is used up of it.
type budgetState struct {
	Budget

	mu  sync.Mutex // never held across a wait; it guards each account
	all usageAccount
}

// usageAccount is what was used up, and what calls in flight may use up.
type usageAccount struct{ spent, reserved Usage }

// reservation is one call's, kept with its properties.
type reservation struct {
	most  Usage
	began time.Time
	back  bool // it was released: paid for before
}

func (l *budgetState) session(f Call) *usageAccount {
	v, _ := f.SessionProperties().LoadOrStore(l, &usageAccount{})
	a, _ := v.(*usageAccount)
	return a
}

func (l *budgetState) most(f Call) Usage {
	m := Usage{Time: f.Tool().Spec().Hints.Timeout}
	if l.EstimateUsage != nil {
		m = l.EstimateUsage(f)
	}
	m.Calls = 1
	return Usage{Calls: 1, Time: max(0, m.Time), Cost: max(0, m.Cost), Output: max(0, m.Output)}
}

func (l *budgetState) before(_ context.Context, f Call) error {
	r := reservation{most: l.most(f), began: f.Now(), back: f.Released()}
	if !r.back {
		over, final := l.reserve(l.session(f), r.most)
		if over != "" {
			if final {
				f.EndLoop(over)
			}
			return errors.New(over)
		}
	}
	f.Properties().Store(l, r)
	return nil
}

// reserve takes from both accounts, or from neither. final: nothing in flight can make
// room any more.
func (l *budgetState) reserve(session *usageAccount, most Usage) (over string, final bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range []struct {
		of    string
		bound Usage
		a     *usageAccount
	}{{"session", l.Session, session}, {"runtime", l.Runtime, &l.all}} {
		if what := lacking(b.bound, b.a.spent, most); what != "" {
			return "the budget of the " + b.of + " has too little left: " + what, true
		}
		if what := lacking(b.bound, b.a.spent.plus(b.a.reserved), most); what != "" {
			return "calls in flight may take the rest of the budget of the " + b.of + ": " + what, false
		}
	}
	session.reserved, l.all.reserved = session.reserved.with(most, 1), l.all.reserved.with(most, 1)
	return "", false
}

// lacking names the first bound that a call does not fit into.
func lacking(bound, used, most Usage) string {
	limits, uses, wants := bound.list(), used.list(), most.list()
	for i, limit := range limits {
		if limit > 0 && max(1, wants[i]) > limit-uses[i] {
			why := fmt.Sprintf("%s of %s used", words(i, uses[i]), words(i, limit))
			if wants[i] > 1 {
				why += ", and this call may use " + words(i, wants[i])
			}
			return why
		}
	}
	return ""
}

func (a Usage) list() [4]int64 { return [4]int64{a.Calls, int64(a.Time), a.Cost, a.Output} }

func (a Usage) plus(b Usage) Usage {
	return Usage{Calls: more(a.Calls, b.Calls), Time: more(a.Time, b.Time), Cost: more(a.Cost, b.Cost), Output: more(a.Output, b.Output)}
}

// with adds what one call may take, or takes it away again. Where there is a bound it fitted.
func (a Usage) with(b Usage, sign int64) Usage {
	return Usage{
		Calls: a.Calls + sign*b.Calls, Time: a.Time + time.Duration(sign)*b.Time, Cost: a.Cost + sign*b.Cost, Output: a.Output + sign*b.Output,
	}
}

// more is a sum of what is not negative. One that is too great is the greatest there is: a
// bound is never got round by it.
func more[N ~int64](a, b N) N {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func words(i int, n int64) string {
	switch i {
	case 0:
		return fmt.Sprintf("%d calls", n)
	case 1:
		return fmt.Sprint(time.Duration(n))
	case 2:
		return fmt.Sprintf("%d of cost", n)
	default:
		return fmt.Sprintf("%d bytes of output", n)
	}
}

// after tells the model what will be left, as far as that is known now.
func (l *budgetState) after(_ context.Context, f Call, res tool.Result) (tool.Result, error) {
	r, ok := l.reserved(f)
	if !ok || l.WarnPercent < 0 {
		return res, nil
	}
	now := Usage{Calls: 1, Time: max(0, f.Now().Sub(r.began)), Cost: r.most.Cost, Output: size(res)}
	if r.back {
		now.Calls, now.Cost = 0, 0
	}
	l.mu.Lock()
	session := l.session(f)
	low, gone := nearly(l.WarnPercent, "session", l.Session, session.spent.plus(now))
	more, goneToo := nearly(l.WarnPercent, "runtime", l.Runtime, l.all.spent.plus(now))
	l.mu.Unlock()
	if low = append(low, more...); len(low) == 0 {
		return res, nil
	}
	notice := "[" + strings.Join(low, "; ") + ". Finish with what is left.]"
	if gone || goneToo {
		notice = "[" + strings.Join(low, "; ") + ". No further call will run: answer with what there is.]"
		f.EndLoop(strings.Join(low, "; "))
	}
	if res.Text == "" && res.JSON != nil {
		res.Text = string(res.JSON) // which the model would have been given
	}
	res.Text = strings.TrimLeft(res.Text+"\n\n"+notice, "\n")
	return res, nil
}

// nearly returns the bounds that are nearly used up, and whether one of them is
// used up.
func nearly(percent int, of string, bound, used Usage) (low []string, gone bool) {
	limits, uses := bound.list(), used.list()
	for i, limit := range limits {
		left := max(0, limit-uses[i])
		if limit > 0 && float64(left) <= float64(limit)*float64(percent)/100 {
			low = append(low, fmt.Sprintf("%s left of %s for the %s", words(i, left), words(i, limit), of))
			gone = gone || left == 0
		}
	}
	return low, gone
}

func (l *budgetState) reserved(f Call) (reservation, bool) {
	v, ok := f.Properties().Load(l)
	if !ok {
		return reservation{}, false
	}
	r, ok := v.(reservation)
	return r, ok
}

// ended puts what a call did use up in the place of what was reserved.
func (l *budgetState) ended(_ context.Context, f Call, o tool.Outcome) {
	r, ok := l.reserved(f)
	if !ok {
		return // it was refused here
	}
	cost := r.most.Cost // also where Cost panics
	defer func() { l.settle(l.session(f), r, l.used(f, o, r, cost)) }()
	if o.Filter != "" { // answered in the tool's place
		cost = 0
	}
	if l.Cost != nil && ran(o.Status) {
		cost = r.most.Cost
		cost = max(0, l.Cost(f, o))
	}
}

func (l *budgetState) settle(session *usageAccount, r reservation, used Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range []*usageAccount{session, &l.all} {
		if !r.back {
			a.reserved = a.reserved.with(r.most, -1)
		}
		a.spent = a.spent.plus(used)
	}
}

// ran reports whether a call came as far as its code, or an answer in the place of that.
func ran(s tool.Status) bool {
	switch s {
	case tool.StatusDenied, tool.StatusPending, tool.StatusInvalid, tool.StatusHeld:
		return false
	case tool.StatusDone, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout, tool.StatusUnknown:
	}
	return true
}

func (l *budgetState) used(f Call, o tool.Outcome, r reservation, cost int64) Usage {
	switch {
	case o.Status == tool.StatusHeld:
		return Usage{Calls: 1, Cost: r.most.Cost}
	case !ran(o.Status):
		return Usage{}
	}
	u := Usage{Calls: 1, Time: max(0, f.Now().Sub(r.began)), Cost: cost}
	if o.Status == tool.StatusDone {
		u.Output = size(o.Result)
	}
	if r.back { // the call, and what it could cost, was paid for when it was held
		u.Calls, u.Cost = 0, max(0, u.Cost-r.most.Cost)
	}
	return u
}

// size is how many bytes of a result a model or a program gets.
func size(r tool.Result) int64 {
	n := len(r.Text) + len(r.JSON)
	for _, p := range r.Parts {
		n += len(p.Data)
	}
	return int64(n)
}

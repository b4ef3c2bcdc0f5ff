package pastcall

import (
	"encoding/json"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/canon"
)

// List answers from a short list, in the order of the ends of the calls. It
// implements history.Source.
type List []history.Call

// Find implements history.Source.
func (l List) Find(q history.Query) (a history.Answer, err error) {
	p, w, err := parse(q)
	if err != nil {
		return a, err
	}
	var sum canon.Amount
	for i := range l {
		c := &l[i]
		if w.Last > 0 && len(l)-i > w.Last || w.Span > 0 && !c.At.After(q.Now.Add(-w.Span)) {
			continue
		}
		matches, known := p.Matches(c)
		if !known {
			return history.Answer{}, ErrErased
		}
		if !matches {
			continue
		}
		a.Count, a.Last = a.Count+1, i+1
		if q.Sum == "" {
			continue
		}
		one, err := Amount(c.Args, q.Sum)
		if err != nil {
			return history.Answer{}, err
		}
		sum = sum.Plus(one)
	}
	if q.Sum != "" {
		a.Sum = json.Number(sum.String())
	}
	return a, nil
}

func parse(q history.Query) (Pattern, Window, error) {
	p, err := Parse(q)
	if err != nil {
		return p, Window{}, err
	}
	if q.Sum != "" {
		if err := CheckPointer(q.Sum); err != nil {
			return p, Window{}, err
		}
	}
	w, err := ParseWindow(q.Window)
	return p, w, err
}

// Unknown is the source of a session of which nothing is known.
type Unknown struct{}

// Find implements history.Source.
func (Unknown) Find(history.Query) (history.Answer, error) { return history.Answer{}, ErrUnknown }

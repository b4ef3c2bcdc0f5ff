package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clock says how long everything is measured.
type clock struct {
	rounds int
	turn   time.Duration
}

// contestant is one thing that is measured: something done again and again, by
// one caller or by several at once.
type contestant struct {
	name    string
	callers int // 0 is one
	op      func(caller int) error
	once    bool // one operation a turn, however long
	cpu     bool // count the processor's time, as for what waits for nothing: what else the machine does is not in it
}

// times are the seconds that one operation took, by contestant and round.
type times map[string][]float64

// parts is how often everybody has a part of his turn within one round: what
// disturbs the machine for a tenth of a second then disturbs all of them.
const parts = 5

// inTurns gives every contestant its turn once a round, so that a machine that
// gets slower does so for all of them. A first round is not counted.
func inTurns(c clock, list ...contestant) (times, error) {
	got := times{}
	for round := -1; round < c.rounds; round++ {
		took, err := oneRound(c.turn, list, round+1)
		if err != nil {
			return nil, err
		}
		for i, one := range list {
			if round >= 0 {
				got[one.name] = append(got[one.name], took[i])
			}
		}
	}
	return got, nil
}

func oneRound(turn time.Duration, list []contestant, round int) ([]float64, error) {
	took := make([]float64, len(list))
	for part := range parts {
		for i := range list {
			// Each begins with another one: what a turn leaves behind, such as
			// garbage, then burdens all alike.
			n := (i + part + round) % len(list)
			if list[n].once && part > 0 {
				continue
			}
			one, err := list[n].turn(turn / parts)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list[n].name, err)
			}
			if list[n].once {
				took[n] = one
			} else {
				took[n] += one / parts
			}
		}
	}
	return took, nil
}

// turn returns the seconds that an operation took.
func (c contestant) turn(length time.Duration) (float64, error) {
	if c.once {
		begin := time.Now()
		err := c.op(0)
		return time.Since(begin).Seconds(), err
	}
	if c.callers > 1 {
		return c.together(length)
	}
	begin, used, n := time.Now(), processorTime(), 0
	for {
		// The clock is read after a few operations only: it has a price too.
		for range 8 {
			if err := c.op(0); err != nil {
				return 0, err
			}
		}
		n += 8
		if took := time.Since(begin); took >= length {
			if c.cpu {
				took = processorTime() - used
			}
			return took.Seconds() / float64(n), nil
		}
	}
}

func (c contestant) together(length time.Duration) (float64, error) {
	var all sync.WaitGroup
	var n atomic.Int64
	errs := make([]error, c.callers)
	begin := time.Now()
	for i := range c.callers {
		all.Go(func() {
			for time.Since(begin) < length && errs[i] == nil {
				errs[i] = c.op(i)
				n.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took.Seconds() / float64(n.Load()), nil
}

// ratio is the median of the ratios of each round: the two stand next to each
// other there, and what disturbs one round disturbs no other.
func (t times) ratio(of, to string) float64 {
	a, b := t[of], t[to]
	each := make([]float64, len(a))
	for i := range a {
		each[i] = a[i] / b[i]
	}
	return median(each)
}

func median[T cmp.Ordered](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

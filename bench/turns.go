package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clock sets the duration of the measurements.
type clock struct {
	rounds int
	slice  time.Duration
}

// subject is a measured subject: a repeated operation, by one caller or by
// several at once.
type subject struct {
	name    string
	callers int          // 0: one
	ready   func() error // runs before each measurement and is not measured; nil: nothing
	op      func(caller int) error
	once    bool // one operation in each measurement, of any length
	cpu     bool // measure processor time, for an operation that waits for nothing: other processes do not affect it
}

// times are the seconds of one operation, by subject and round.
type times map[string][]float64

// parts is the number of parts of a round. Each subject runs in every part,
// so that a short disturbance of the machine affects all of them.
const parts = 5

// interleave runs every subject once a round, so that a machine that gets
// slower does so for all of them. A first round does not count.
func interleave(c clock, list ...subject) (times, error) {
	got := times{}
	for round := -1; round < c.rounds; round++ {
		took, err := oneRound(c.slice, list, round+1)
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

func oneRound(turn time.Duration, list []subject, round int) ([]float64, error) {
	took := make([]float64, len(list))
	for part := range parts {
		for i := range list {
			// Each part begins with another one, so that the garbage of one
			// measurement burdens all equally.
			n := (i + part + round) % len(list)
			if list[n].once && part > 0 {
				continue
			}
			one, err := list[n].prepared(turn / parts)
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

// prepared is measure after what the operation needs is there. The garbage of
// the preparation is collected before.
func (c subject) prepared(length time.Duration) (float64, error) {
	if c.ready != nil {
		if err := c.ready(); err != nil {
			return 0, err
		}
		runtime.GC()
	}
	return c.measure(length)
}

// measure returns the seconds of an operation.
func (c subject) measure(length time.Duration) (float64, error) {
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
		// Read the clock only after a few operations: it has a cost too.
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

func (c subject) together(length time.Duration) (float64, error) {
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

// ratio returns the median of the ratios of each round: a disturbance in one
// round affects no other.
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

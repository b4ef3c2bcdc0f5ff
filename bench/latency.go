package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// quantiles are the times of single operations: the median, and the 99th
// percentile.
type quantiles struct{ p50, p99 times }

// interleaveEach is interleave for single operations: it merges those of one round.
func interleaveEach(c clock, list ...subject) (quantiles, error) {
	q := quantiles{times{}, times{}}
	for round := -1; round < c.rounds; round++ {
		took := make([][]float64, len(list))
		for part := range parts {
			for i := range list {
				n := (i + part + round + 1) % len(list)
				some, err := list[n].each(c.slice / parts)
				if err != nil {
					return q, fmt.Errorf("%s: %w", list[n].name, err)
				}
				took[n] = append(took[n], some...)
			}
		}
		for i, one := range list {
			if round >= 0 {
				q.p50[one.name] = append(q.p50[one.name], quantile(took[i], 50))
				q.p99[one.name] = append(q.p99[one.name], quantile(took[i], 99))
			}
		}
	}
	return q, nil
}

// each returns the seconds of every operation that began within a time.
func (c subject) each(length time.Duration) ([]float64, error) {
	var all sync.WaitGroup
	callers := max(c.callers, 1)
	took, errs := make([][]float64, callers), make([]error, callers)
	begin := time.Now()
	for i := range callers {
		all.Go(func() {
			for errs[i] == nil && time.Since(begin) < length {
				start := time.Now()
				errs[i] = c.op(i)
				took[i] = append(took[i], time.Since(start).Seconds())
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(took...), nil
}

// quantile returns a percentile.
func quantile(list []float64, percent int) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)*percent/100, len(list)-1)]
}

// spread returns the range of the ratios of single rounds.
func (t times) spread(of, to string) string {
	a, b := t[of], t[to]
	each := make([]float64, len(a))
	for i := range a {
		each[i] = a[i] / b[i]
	}
	return fmt.Sprintf("rounds %.2f to %.2f", slices.Min(each), slices.Max(each))
}

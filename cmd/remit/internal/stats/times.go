package stats

import (
	"math/bits"
	"slices"
	"time"
)

const (
	// kept is how many times of a row are kept as they are: 32 KiB.
	kept = 4096
	// steps are the steps of the histogram for each doubling; it has 3712 for all times
	// that there are, 29 KiB.
	steps = 64
)

// times are the times of one row.
type times struct {
	n         int
	each      []time.Duration // while there are few
	histogram []int
}

func (t *times) add(d time.Duration) {
	d = max(d, 0) // where the clock went back
	t.n++
	if t.histogram == nil && len(t.each) < kept {
		t.each = append(t.each, d)
		return
	}
	if t.histogram == nil {
		t.histogram = make([]int, step(1<<63-1)+1)
		for _, d := range t.each {
			t.histogram[step(d)]++
		}
		t.each = nil
	}
	t.histogram[step(d)]++
}

func (t *times) sum() Latency {
	slices.Sort(t.each)
	return Latency{Count: t.n, P50: t.at(50), P99: t.at(99), Exact: t.histogram == nil}
}

// at is a percentile by nearest rank.
func (t *times) at(percent int) time.Duration {
	rank := (percent*t.n + 99) / 100
	switch {
	case t.n == 0:
		return 0
	case t.histogram == nil:
		return t.each[rank-1]
	}
	for i, n := range t.histogram {
		if rank -= n; rank <= 0 {
			return end(i)
		}
	}
	return end(len(t.histogram) - 1)
}

// step is the step of the histogram that a time belongs to: below 128 each has its own,
// above them each holds a 64th of what it begins with.
func step(d time.Duration) int {
	shift := max(bits.Len64(uint64(d))-7, 0)
	return shift*steps + int(uint64(d)>>shift)
}

// end is the longest time of a step.
func end(i int) time.Duration {
	shift := max(i/steps-1, 0)
	return time.Duration((uint64(i-shift*steps)+1)<<shift - 1)
}

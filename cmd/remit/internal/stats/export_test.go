package stats

import "time"

// Summed are the times of a list.
func Summed(list []time.Duration) Latency {
	var t times
	for _, d := range list {
		t.add(d)
	}
	return t.sum()
}

// Kept is how many are kept as they are.
const Kept = kept

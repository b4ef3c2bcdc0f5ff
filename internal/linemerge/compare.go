package linemerge

import "slices"

// maxSteps bounds the comparison of two versions: it takes less than a second,
// and suffices for more than 5,000 differing lines.
const maxSteps = 20_000_000

// hunk is a change: the lines from up to to of one version became the lines
// otherFrom up to otherTo of the other.
type hunk struct{ from, to, otherFrom, otherTo int }

// compare returns the changes that make b of a, in order. There is an unchanged
// line between two of them. They are as few lines as possible: Myers, "An O(ND)
// difference algorithm and its variations", with its refinement for linear
// space.
func compare(a, b []int) ([]hunk, error) {
	c := comparison{a: a, b: b, gone: make([]bool, len(a)), came: make([]bool, len(b))}
	room := 2*(len(a)+len(b)) + 4
	c.forward, c.backward = make([]int, room), make([]int, room)
	if !c.split(0, len(a), 0, len(b)) {
		return nil, ErrTooDifferent
	}
	return c.slide(c.hunks()), nil
}

type comparison struct {
	a, b       []int
	gone, came []bool // lines of a that b lacks, and of b that a lacks
	steps      int

	forward, backward []int // by diagonal: the line of a that is reached
}

// split finds the differences between two ranges. It reports whether it did
// within the limit.
func (c *comparison) split(a0, a1, b0, b1 int) bool {
	for a0 < a1 && b0 < b1 && c.a[a0] == c.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && c.a[a1-1] == c.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 || b0 == b1 {
		fill(c.gone[a0:a1])
		fill(c.came[b0:b1])
		return true
	}
	x, y, ok := c.middle(a0, a1, b0, b1)
	return ok && c.split(a0, x, b0, y) && c.split(x, a1, y, b1)
}

func fill(lines []bool) {
	for i := range lines {
		lines[i] = true
	}
}

// middle returns a point on a shortest path through two ranges. Paths from both
// ends grow by one difference each until they meet. A diagonal is the distance
// between the line of a and that of b.
func (c *comparison) middle(a0, a1, b0, b1 int) (x, y int, ok bool) {
	n, m := a1-a0, b1-b0
	delta, mid := n-m, len(c.forward)/2
	odd := delta&1 != 0
	c.forward[mid+1], c.backward[mid+1] = 0, 0
	for d := 0; d <= (n+m+1)/2; d++ {
		for k := -d; k <= d; k += 2 {
			x := farthest(c.forward, mid+k, k == -d, k == d)
			y := x - k
			for x < n && y < m && x >= 0 && y >= 0 && c.a[a0+x] == c.b[b0+y] {
				x, y = x+1, y+1
				c.steps++
			}
			c.forward[mid+k] = x
			if c.steps++; odd && delta-k >= -(d-1) && delta-k <= d-1 && x+c.backward[mid+delta-k] >= n {
				return a0 + x, b0 + y, true
			}
		}
		for k := -d; k <= d; k += 2 {
			x := farthest(c.backward, mid+k, k == -d, k == d)
			y := x - k
			for x < n && y < m && x >= 0 && y >= 0 && c.a[a1-1-x] == c.b[b1-1-y] {
				x, y = x+1, y+1
				c.steps++
			}
			c.backward[mid+k] = x
			if c.steps++; !odd && delta-k >= -d && delta-k <= d && x+c.forward[mid+delta-k] >= n {
				return a1 - x, b1 - y, true
			}
		}
		if c.steps > maxSteps {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// farthest returns where a path on a diagonal begins its next matching lines.
func farthest(v []int, at int, lowest, highest bool) int {
	if lowest || !highest && v[at-1] < v[at+1] {
		return v[at+1]
	}
	return v[at-1] + 1
}

// hunks joins the differing lines into changes.
func (c *comparison) hunks() (out []hunk) {
	i, j := 0, 0
	for i < len(c.a) || j < len(c.b) {
		h := hunk{from: i, otherFrom: j}
		for i < len(c.a) && c.gone[i] {
			i++
		}
		for j < len(c.b) && c.came[j] {
			j++
		}
		if h.to, h.otherTo = i, j; h.to > h.from || h.otherTo > h.otherFrom {
			out = append(out, h)
			continue
		}
		i, j = i+1, j+1
	}
	return out
}

// slide moves each change that only adds or only removes lines to the last of
// its possible places, because several can show the same difference: of two
// equal lines, either can be the new one. A change that reaches another one at
// one of them becomes a part of it. So equal changes of two versions are found
// at the same place.
func (c *comparison) slide(hunks []hunk) []hunk {
	var out []hunk
	for len(hunks) > 0 {
		h := hunks[0]
		hunks = hunks[1:]
		lowest := 0
		if len(out) > 0 {
			lowest = out[len(out)-1].to
		}
		if first := c.up(h, lowest); len(out) > 0 && first.from == lowest {
			h = join(out[len(out)-1], first)
			out = out[:len(out)-1]
			hunks = slices.Insert(hunks, 0, h)
			continue
		}
		h = c.down(h)
		if len(hunks) > 0 && h.to >= hunks[0].from {
			hunks[0] = join(h, hunks[0])
			continue
		}
		out = append(out, h)
	}
	return out
}

func join(a, b hunk) hunk { return hunk{a.from, b.to, a.otherFrom, b.otherTo} }

// up returns the change at its first possible place after the line lowest.
func (c *comparison) up(h hunk, lowest int) hunk {
	for h.from > lowest && (h.from == h.to && c.b[h.otherFrom-1] == c.b[h.otherTo-1] || h.otherFrom == h.otherTo && c.a[h.from-1] == c.a[h.to-1]) {
		h = hunk{h.from - 1, h.to - 1, h.otherFrom - 1, h.otherTo - 1}
	}
	return h
}

// down returns the change at its last possible place.
func (c *comparison) down(h hunk) hunk {
	for h.to < len(c.a) && h.otherTo < len(c.b) && !c.gone[h.to] && !c.came[h.otherTo] &&
		(h.from == h.to && c.b[h.otherFrom] == c.b[h.otherTo] || h.otherFrom == h.otherTo && c.a[h.from] == c.a[h.to]) {
		h = hunk{h.from + 1, h.to + 1, h.otherFrom + 1, h.otherTo + 1}
	}
	return h
}

package linemerge

import (
	"bytes"
	"errors"
	"slices"
)

// ErrTooDifferent is returned for versions that differ in so many lines that a
// comparison takes too long.
var ErrTooDifferent = errors.New("too many lines differ")

// Overlap is a region that both sides changed to different texts, or changed
// right beside each other.
type Overlap struct {
	Line   int    // number of its first line in ours, from 1
	Lines  int    // number of its lines in ours
	Ours   []byte // text of the region in ours
	Theirs []byte // the same in theirs
}

// Text reports whether content can be merged by lines: it has no zero byte.
func Text(content []byte) bool { return bytes.IndexByte(content, 0) < 0 }

// Merge applies to ours what theirs changed in base. It returns overlaps, in
// order and without a merged text, if both changed the same lines or lines
// without an unchanged one between them. Two equal changes are one.
func Merge(base, ours, theirs []byte) (merged []byte, overlaps []Overlap, err error) {
	m := newMerger(base, ours, theirs)
	mine, err := compare(m.base.ids, m.ours.ids)
	if err != nil {
		return nil, nil, err
	}
	other, err := compare(m.base.ids, m.theirs.ids)
	if err != nil {
		return nil, nil, err
	}
	for len(mine) > 0 || len(other) > 0 {
		mine, other = m.next(mine, other)
	}
	if len(m.overlaps) > 0 {
		return nil, m.overlaps, nil
	}
	m.merged = append(m.merged, m.base.text(m.at, len(m.base.ids))...)
	return m.merged, nil, nil
}

// merger holds the state of one merge.
type merger struct {
	base, ours, theirs version

	at       int // lines of base that are merged
	merged   []byte
	overlaps []Overlap
	shift    [2]int // line in ours and in theirs, relative to that in base
}

// version is a text in lines. Equal lines have equal ids, also of different
// versions.
type version struct {
	content []byte
	ends    []int // offset after each line
	ids     []int
}

func newMerger(base, ours, theirs []byte) *merger {
	ids := map[string]int{}
	return &merger{base: split(base, ids), ours: split(ours, ids), theirs: split(theirs, ids)}
}

func split(content []byte, ids map[string]int) version {
	v := version{content: content}
	end := 0
	for line := range bytes.Lines(content) {
		id, ok := ids[string(line)]
		if !ok {
			id = len(ids)
			ids[string(line)] = id
		}
		end += len(line)
		v.ends, v.ids = append(v.ends, end), append(v.ids, id)
	}
	return v
}

// text returns the bytes of some lines.
func (v version) text(from, to int) []byte {
	start := func(line int) int {
		if line == 0 {
			return 0
		}
		return v.ends[line-1]
	}
	return v.content[start(from):start(to)]
}

// next merges the first region that a side changed, and returns what is left of
// both sides. Changes that overlap or touch form one region.
func (m *merger) next(mine, other []hunk) (restOfMine, restOfOther []hunk) {
	from := min(begin(mine), begin(other))
	to := from
	n, o := 0, 0
	for {
		switch {
		case n < len(mine) && mine[n].from <= to:
			to = max(to, mine[n].to)
			n++
			continue
		case o < len(other) && other[o].from <= to:
			to = max(to, other[o].to)
			o++
			continue
		}
		break
	}
	a, b := region(mine[:n], from, to, m.shift[0]), region(other[:o], from, to, m.shift[1])
	m.shift[0] += (a.otherTo - a.otherFrom) - (to - from)
	m.shift[1] += (b.otherTo - b.otherFrom) - (to - from)
	m.merged = append(m.merged, m.base.text(m.at, from)...)
	m.at = to
	ours, theirs := m.ours.text(a.otherFrom, a.otherTo), m.theirs.text(b.otherFrom, b.otherTo)
	switch {
	case n == 0:
		m.merged = append(m.merged, theirs...)
	case o == 0 || slices.Equal(m.ours.ids[a.otherFrom:a.otherTo], m.theirs.ids[b.otherFrom:b.otherTo]):
		m.merged = append(m.merged, ours...)
	default:
		m.overlaps = append(m.overlaps, Overlap{Line: a.otherFrom + 1, Lines: a.otherTo - a.otherFrom, Ours: ours, Theirs: theirs})
	}
	return mine[n:], other[o:]
}

// begin returns the first changed line of base.
func begin(hunks []hunk) int {
	if len(hunks) == 0 {
		return int(^uint(0) >> 1)
	}
	return hunks[0].from
}

// region widens the changes of one side to the lines from and to of base. shift
// is the distance of the lines before it.
func region(hunks []hunk, from, to, shift int) hunk {
	r := hunk{from: from, to: to, otherFrom: from + shift, otherTo: to + shift}
	for _, h := range hunks {
		r.otherTo += (h.otherTo - h.otherFrom) - (h.to - h.from)
	}
	return r
}

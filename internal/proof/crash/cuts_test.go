package crash_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk/simdisk"
)

// cut is one way in which a machine stops. The zero cut is the death of the
// process: nothing is lost.
type cut struct {
	power bool
	lost  int    // number of the newest journal writes that are lost
	keep  string // the disk's pending operations, a digit each: 0 lost, 1 present, 2 incomplete
}

func (c cut) String() string {
	if !c.power {
		return "died"
	}
	return fmt.Sprintf("power:%d:%s", c.lost, c.keep)
}

// kind returns the name of the cut in the matrix.
func (c cut) kind() string {
	switch {
	case !c.power:
		return "clean cut"
	case strings.Contains(c.keep, "2"):
		return "torn tail"
	case strings.TrimRight(strings.TrimLeft(c.keep, "1"), "0") != "":
		return "reordered within a barrier"
	}
	return "unsynced lost"
}

// happen applies the cut to a world.
func (c cut) happen(w *simState) {
	if !c.power {
		w.disk.Crash()
		w.journal.Crash()
		return
	}
	keep, half := make([]bool, len(c.keep)), -1
	for i, digit := range c.keep {
		keep[i] = digit != '0'
		if digit == '2' {
			half = i
		}
	}
	w.disk.Cut(keep, half)
	w.journal.Cut(c.lost)
	w.cut = w.cut || c.lost > 0
}

// mostSubsets is the maximum number of pending operations for which every
// subset is tried.
const mostSubsets = 6

// cutsOf returns the possible cuts of a world.
func cutsOf(w *simState) []cut {
	all := []cut{{}}
	pending, writes := w.disk.Pending(), w.journal.Pending()
	if len(pending) == 0 && writes == 0 {
		return all
	}
	keeps := keepsOf(pending)
	for lost := range writes + 1 {
		for _, keep := range keeps {
			all = append(all, cut{power: true, lost: lost, keep: keep})
		}
	}
	return all
}

// keepsOf returns the sets of pending operations that may be on the medium. If
// they are few, it returns every set that the disk allows. Otherwise it returns
// each prefix, and all but one.
func keepsOf(pending []simdisk.Operation) []string {
	var keeps []string
	add := func(keep []byte) {
		for i, o := range pending {
			for _, n := range o.Needs {
				if keep[n] == '0' {
					keep[i] = '0'
				}
			}
		}
		if !slices.Contains(keeps, string(keep)) {
			keeps = append(keeps, string(keep))
		}
		if last := strings.LastIndexByte(string(keep), '1'); last >= 0 && pending[last].Content {
			torn := slices.Clone(keep)
			torn[last] = '2'
			if !slices.Contains(keeps, string(torn)) {
				keeps = append(keeps, string(torn))
			}
		}
	}
	if len(pending) <= mostSubsets {
		for set := range 1 << len(pending) {
			keep := make([]byte, len(pending))
			for i := range keep {
				keep[i] = '0' + byte(set>>i&1)
			}
			add(keep)
		}
		return keeps
	}
	for i := range len(pending) + 1 {
		add([]byte(strings.Repeat("1", i) + strings.Repeat("0", len(pending)-i)))
	}
	for i := range pending {
		keep := []byte(strings.Repeat("1", len(pending)))
		keep[i] = '0'
		add(keep)
	}
	return keeps
}

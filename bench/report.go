package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// promiseRow is one promise and its result.
type promiseRow struct {
	Suite  string  `json:"suite"`
	What   string  `json:"what"`
	Ratio  float64 `json:"ratio"`
	Target float64 `json:"target,omitempty"` // 0: no promise
	Least  bool    `json:"least,omitempty"`  // the target is a minimum, not a maximum
	Met    bool    `json:"met"`
	Of     string  `json:"of"` // the measured subject, with its median
	To     string  `json:"to"`
}

// most returns the row of a ratio with a maximum.
func most(suite, what string, t times, of, to string, target float64) promiseRow {
	r := t.ratio(of, to)
	return promiseRow{Suite: suite, What: what, Ratio: r, Target: target, Met: r <= target, Of: t.explanation(of), To: t.explanation(to)}
}

// least returns the row of a rate with a minimum: the ratio of two rates.
func least(suite, what string, t times, of, to string, target float64) promiseRow {
	r := t.ratio(to, of) // rates are the inverse of times
	return promiseRow{Suite: suite, What: what, Ratio: r, Target: target, Least: true, Met: r >= target, Of: t.explanation(of), To: t.explanation(to)}
}

// besides returns a row without a promise, for comparison.
func besides(suite, what string, t times, of, to string) promiseRow {
	return promiseRow{Suite: suite, What: what, Ratio: t.ratio(of, to), Met: true, Of: t.explanation(of), To: t.explanation(to)}
}

func (t times) explanation(name string) string {
	return fmt.Sprintf("%s %v", name, round(time.Duration(median(t[name])*1e9)))
}

func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d > 10*time.Microsecond:
		return d.Round(100 * time.Nanosecond)
	default:
		return d.Round(10 * time.Nanosecond)
	}
}

type report struct {
	Machine string       `json:"machine"`
	Rounds  int          `json:"rounds"`
	Results []promiseRow `json:"results"`
}

func table(out io.Writer, rows []promiseRow) error {
	fmt.Fprintf(out, "%s\n\n", thisMachine())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tratio\ttarget\t\tmeasured, medians")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.3f\t%s\t%s to %s\n", r.What, r.Ratio, r.judged(), r.Of, r.To)
	}
	return w.Flush()
}

// judged returns the target and whether it is met, as two cells.
func (r promiseRow) judged() string {
	sign, met := "<=", "met"
	if r.Least {
		sign = ">="
	}
	if !r.Met {
		met = "MISSED"
	}
	if r.Target == 0 {
		return "\t"
	}
	return fmt.Sprintf("%s %g\t%s", sign, r.Target, met)
}

// thisMachine describes the machine.
func thisMachine() string {
	return fmt.Sprintf("%s, %d cores (%s), %s/%s, %s", time.Now().Format(time.DateOnly), runtime.NumCPU(), processor(),
		runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.Trim(name, "\t :")
		}
	}
	return "unknown processor"
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
)

// accepted is the spread of one ratio over the runs that were accepted.
type accepted struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Runs int     `json:"runs"`
}

// ratios are the accepted spreads, by suite and row.
type ratios map[string]map[string]accepted

// slack is how far a ratio may lie beyond the accepted spread, which a few runs
// do not show whole.
const slack = 1.15

// attempts is how often a suite with a regression is measured. A busy machine
// spoils one measurement, and a regression all of them.
const attempts = 3

func readRatios(file string) (ratios, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ratios{}, nil
	}
	if err != nil {
		return nil, err
	}
	var all ratios
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// accept extends the spreads by the rows of a run, and drops rows that the suites of
// the run no longer have.
func (a ratios) accept(rows []promiseRow) {
	seen := ratios{}
	for _, r := range rows {
		was, known := a[r.Suite][r.What]
		if !known {
			was = accepted{Low: r.Ratio, High: r.Ratio}
		}
		if seen[r.Suite] == nil {
			seen[r.Suite] = map[string]accepted{}
		}
		seen[r.Suite][r.What] = accepted{Low: short(min(was.Low, r.Ratio)), High: short(max(was.High, r.Ratio)), Runs: was.Runs + 1}
	}
	maps.Copy(a, seen)
}

// short keeps three digits, more than two runs have in common.
func short(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

func (a ratios) write(file string) error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}

// worse returns why a row is a regression, or "". A row that was never accepted is
// none.
func (a ratios) worse(r promiseRow) string {
	was, known := a[r.Suite][r.What]
	switch {
	case !known:
		return ""
	case r.Least && r.Ratio < was.Low/slack:
		return fmt.Sprintf("%s: %.3f, and it was at least %.3f in %d runs", r.What, r.Ratio, was.Low, was.Runs)
	case !r.Least && r.Ratio > was.High*slack:
		return fmt.Sprintf("%s: %.3f, and it was at most %.3f in %d runs", r.What, r.Ratio, was.High, was.Runs)
	}
	return ""
}

// regressions returns the regressions of a suite, and the rows that it lost.
func (a ratios) regressions(suite string, rows []promiseRow) (all []string) {
	have := map[string]bool{}
	for _, r := range rows {
		have[r.What] = true
		if why := a.worse(r); why != "" {
			all = append(all, why)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(a[suite])) {
		if !have[what] {
			all = append(all, what+": the suite does not measure it any more; accept the new rows")
		}
	}
	return all
}

// accept adds the ratios of a run to the file.
func accept(file string, rows []promiseRow) error {
	a, err := readRatios(file)
	if err != nil {
		return err
	}
	a.accept(rows)
	return a.write(file)
}

// check measures suites and fails if a ratio is worse than those of the file.
func check(out io.Writer, file string, chosen []suite, c clock) error {
	a, err := readRatios(file)
	if err != nil {
		return err
	}
	return a.check(out, chosen, c)
}

// check measures suites and compares them with the accepted spreads. It measures a
// suite with a regression again.
func (a ratios) check(out io.Writer, chosen []suite, c clock) error {
	var all []string
	for _, s := range chosen {
		if len(a[s.name]) == 0 {
			fmt.Fprintf(out, "%-8s nothing is accepted yet\n", s.name)
			continue
		}
		var found []string
		for n := range attempts {
			fmt.Fprintf(os.Stderr, "bench: %s, measurement %d\n", s.name, n+1)
			rows, err := s.run(c)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if found = a.regressions(s.name, rows); len(found) == 0 {
				break
			}
		}
		fmt.Fprintf(out, "%-8s %d rows, %d worse\n", s.name, len(a[s.name]), len(found))
		for _, why := range found {
			fmt.Fprintf(out, "         %s\n", why)
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		return fmt.Errorf("%d ratios are worse than what was accepted", len(all))
	}
	return nil
}

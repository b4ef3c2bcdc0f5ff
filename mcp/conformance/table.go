package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report is what one run of the suite came to.
type report struct {
	suiteRun

	part      string
	apart     []exception
	scenarios []scenario
	took      time.Duration
	failed    bool // it did not run
}

// scenario is one of the suite.
type scenario struct {
	name           string
	uncounted      string // why it does not count; empty: it does
	good           bool
	passed, failed int // checks
}

// count is how many scenarios passed, of how many.
func (r report) count(counts bool) (good, all, checks int) {
	for _, s := range r.scenarios {
		if (s.uncounted == "") != counts {
			continue
		}
		all++
		checks += s.passed
		if s.good {
			good++
		}
	}
	return good, all, checks
}

// clean reports whether all that counts for the suite passed.
func (r report) clean() bool {
	return !slices.ContainsFunc(r.scenarios, func(s scenario) bool { return s.uncounted == "" && !s.good })
}

// failures are the scenarios that did not pass, and those that stand apart and did. What does not count for the suite does here.
func (r report) failures() (names []string) {
	for _, s := range r.scenarios {
		if s.good == r.isExcepted(s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

func (r report) isExcepted(name string) bool {
	return slices.ContainsFunc(r.apart, func(e exception) bool { return e.name == name })
}

func (r report) bad() bool { return r.failed || len(r.failures()) > 0 }

// names lists the scenarios that did not pass, those first that should have.
func (r report) names() string {
	var all, apart, uncounted []string
	for _, s := range r.scenarios {
		switch {
		case s.good == r.isExcepted(s.name):
			all = append(all, "**"+s.name+"**")
		case !s.good && s.uncounted != "":
			uncounted = append(uncounted, s.name+" (2)")
		case !s.good:
			apart = append(apart, s.name+" (1)")
		}
	}
	return strings.Join(slices.Concat(all, apart, uncounted), ", ")
}

// reasons say why scenarios stand apart.
func reasons(all []report) string {
	var counted, others []exception
	for _, r := range all {
		for _, e := range r.apart {
			i := slices.IndexFunc(r.scenarios, func(s scenario) bool { return s.name == e.name })
			switch {
			case i < 0: // of another revision
			case r.scenarios[i].uncounted == "":
				counted = append(counted, e)
			default:
				others = append(others, e)
			}
		}
	}
	return listed("(1) counts, and does not pass, because", counted) + listed("(2) does not count for the suite, and does not pass, because", others)
}

// listed says of each reason what it is one for.
func listed(what string, all []exception) string {
	names := map[string][]string{}
	for _, e := range all {
		if !slices.Contains(names[e.why], e.name) {
			names[e.why] = append(names[e.why], e.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", what)
	for _, why := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "- %s: %s\n", why, strings.Join(names[why], ", "))
	}
	return b.String()
}

// table is what is printed, and what the guide holds.
func table(all []report) string {
	var b strings.Builder
	b.WriteString("| what | suite | revision | count | checks | others | not passed | took |\n| --- | --- | --- | ---: | ---: | ---: | --- | ---: |\n")
	for _, r := range all {
		if r.failed {
			fmt.Fprintf(&b, "| %s | | | DID NOT RUN | | | | |\n", r.part)
			continue
		}
		good, of, checks := r.count(true)
		more, ofMore, _ := r.count(false)
		fmt.Fprintf(&b, "| %s | %s | %s | %d of %d | %d | %d of %d | %s | %s |\n",
			r.part, r.version, r.revision, good, of, checks, more, ofMore, r.names(), r.took.Round(time.Second))
	}
	return b.String()
}

// explain says of each scenario that did not pass what was wrong, as the suite left it in a folder.
func explain(dir string, r report, to io.Writer) error {
	for _, sc := range r.scenarios {
		if sc.good {
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
		if err != nil {
			return err
		}
		nested, err := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json"))
		if err != nil {
			return err
		}
		for _, file := range append(found, nested...) {
			at, err := filepath.Rel(dir, filepath.Dir(file))
			if err != nil {
				return err
			}
			if i := strings.Index(at, sc.name+"-20"); i != 0 && (i < 0 || at[i-1] != '-') {
				continue
			}
			if err := explainFile(file, sc.name, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func explainFile(file, name string, to io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var checks []struct{ ID, Status, ErrorMessage, Description string }
	if err := json.Unmarshal(text, &checks); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, c := range checks {
		if c.Status == "FAILURE" {
			_, _ = fmt.Fprintf(to, "  %s: %s: %s\n", name, c.ID, strings.ReplaceAll(c.ErrorMessage, "\n", " "))
		}
	}
	return nil
}

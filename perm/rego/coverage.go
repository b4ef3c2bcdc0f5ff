package rego

import "github.com/open-policy-agent/opa/v1/cover"

// FileCoverage is the test coverage of one file. A rule is covered if it
// produced a value, a line if it was evaluated.
type FileCoverage struct {
	File         string  `json:"file"`
	Rules        int     `json:"rules"`
	RulesReached int     `json:"rules_reached"`
	Lines        int     `json:"lines"` // lines that hold the head or a condition of a rule
	LinesReached int     `json:"lines_reached"`
	Percent      float64 `json:"percent"` // percentage of covered lines; 100 for a file without lines
}

// coverage returns the coverage of the files that decide, by name.
func coverage(report cover.Report, m *modules) []FileCoverage {
	own := m.own()
	out := make([]FileCoverage, 0, len(own))
	for _, name := range own {
		c, reached := FileCoverage{File: name, Percent: 100}, map[int]bool{}
		file := report.Files[name]
		for _, r := range file.Covered {
			mark(reached, r, true)
		}
		for _, r := range file.NotCovered { // a line is covered only if all of it is
			mark(reached, r, false)
		}
		for _, ok := range reached {
			c.Lines++
			if ok {
				c.LinesReached++
			}
		}
		if c.Lines > 0 {
			c.Percent = 100 * float64(c.LinesReached) / float64(c.Lines)
		}
		for _, rule := range m.parsed[name].Rules {
			for ; rule != nil; rule = rule.Else {
				c.Rules++
				if head := rule.Head.Loc(); head != nil && reached[head.Row] {
					c.RulesReached++
				}
			}
		}
		out = append(out, c)
	}
	return out
}

func mark(lines map[int]bool, r cover.Range, reached bool) {
	for row := r.Start.Row; row <= r.End.Row; row++ {
		lines[row] = reached
	}
}

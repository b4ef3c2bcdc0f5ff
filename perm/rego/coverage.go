package rego

import "github.com/open-policy-agent/opa/v1/cover"

// FileCoverage is how much of one file tests reached. A rule is reached when it
// gave something, a line when it was looked at.
type FileCoverage struct {
	File         string  `json:"file"`
	Rules        int     `json:"rules"`
	RulesReached int     `json:"rules_reached"`
	Lines        int     `json:"lines"` // those that hold a rule's head or a condition
	LinesReached int     `json:"lines_reached"`
	Percent      float64 `json:"percent"` // of the lines; 100 for a file without any
}

// coverage lists the files that decide, by name.
func coverage(report cover.Report, m *modules) []FileCoverage {
	own := m.own()
	out := make([]FileCoverage, 0, len(own))
	for _, name := range own {
		c, reached := FileCoverage{File: name, Percent: 100}, map[int]bool{}
		file := report.Files[name]
		for _, r := range file.Covered {
			mark(reached, r, true)
		}
		for _, r := range file.NotCovered { // a line is reached when all of it was
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

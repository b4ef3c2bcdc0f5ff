package tool

import "math"

// Progress is how far a call is, as its tool says.
type Progress struct {
	Call    string
	Tool    string
	Done    float64 // in any unit
	Total   float64 // 0: not known
	Message string  // of the tool: any text
}

// progress is where a call reports; nil where nobody listens. A report that is no
// number, or a listener that panics, is no reason for a call to fail.
func (l *Line) progress(p permitted) func(done, total float64, message string) {
	if l.p.Progress == nil {
		return nil
	}
	return func(done, total float64, message string) {
		defer func() { _ = recover() }()
		l.p.Progress(Progress{Call: p.id, Tool: p.tool.Name(), Done: amount(done), Total: amount(total), Message: p.veil.text(message)})
	}
}

func amount(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}

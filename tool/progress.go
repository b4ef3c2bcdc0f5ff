package tool

// Progress is the progress of a call, as its tool reports it.
type Progress struct {
	Call    string
	Tool    string
	Done    float64 // in any unit
	Total   float64 // 0: unknown
	Message string  // any text from the tool
}

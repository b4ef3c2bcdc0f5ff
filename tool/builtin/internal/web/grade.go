package web

import _ "embed" // the grades

// grades are what revert/reverttest found out about the tools of this package. Its test
// runs the kit again, and writes them where REVERTTEST_UPDATE is set.
//
//go:embed grades.json
var grades []byte

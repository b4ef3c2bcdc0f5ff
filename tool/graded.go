package tool

import (
	"errors"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/provenance"
)

// Graded returns the tool with the grade that the file holds for its digest. If
// the file has none, the tool is ungraded: a changed declaration is another
// one, which the kit has not tested.
func (t Tool) Graded(file []byte) (Tool, error) {
	all, err := provenance.ReadGrades(file)
	if err != nil {
		return Tool{}, err
	}
	if t.t == nil {
		return Tool{}, errors.New("the zero Tool has no grade")
	}
	graded := *t.t
	graded.grade = nil
	for _, r := range all {
		if r.Digest == t.t.digest {
			graded.grade = &r
		}
	}
	return Tool{&graded}, nil
}

// Grade returns the grade of the tool.
func (t Tool) Grade() provenance.Grade {
	if t.t == nil || t.t.grade == nil {
		return provenance.Ungraded
	}
	return t.t.grade.Grade
}

// GradeRecord returns the record of the tool's grade, if the tool is graded.
func (t Tool) GradeRecord() mo.Option[provenance.GradeRecord] {
	if t.t == nil {
		return mo.None[provenance.GradeRecord]()
	}
	return mo.PointerToOption(t.t.grade)
}

// Package doctor has the verbs that describe this installation: doctor and
// version.
package doctor

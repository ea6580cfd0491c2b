//go:build !man

package main

import "github.com/spf13/cobra"

// generators is empty in the released program; see man.go.
var generators []func(*app) *cobra.Command

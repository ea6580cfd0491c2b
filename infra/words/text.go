package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// A text is the prose of one file.
type text struct {
	path            string
	sentences       []sentence
	lines, comments int // lines that are not blank, and those with a comment; 0 in Markdown and generated code
}

// A sentence is also a heading, a cell of a table, or a comment without a full stop.
type sentence struct {
	line int // the first line of its paragraph
	text string
}

// reader is the function that reads files of that name; nil if there is none.
func reader(name string) func([]byte) (text, error) {
	switch {
	case strings.HasSuffix(name, ".go"):
		return readGo
	case strings.HasSuffix(name, ".md"):
		return readMarkdown
	}
	return nil
}

// readGo reads the comments of a Go file. Directives, and indented lines, which are code or
// diagrams, are no prose.
func readGo(src []byte) (text, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return text{}, err
	}
	if ast.IsGenerated(f) {
		return text{}, nil
	}
	t := text{comments: commentedLines(files, f)}
	for line := range strings.Lines(string(src)) {
		if strings.TrimSpace(line) != "" {
			t.lines++
		}
	}
	for _, group := range f.Comments {
		var p paragraph
		for _, c := range group.List {
			at := files.Position(c.Pos()).Line
			body := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/"), "//")
			if strings.HasPrefix(c.Text, "//") && body != "" && body[0] != ' ' && body[0] != '\t' {
				continue // a directive
			}
			for i, line := range strings.Split(body, "\n") {
				code := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "   ") && !item.MatchString(line)
				switch trimmed := strings.TrimSpace(line); {
				case trimmed == "" || code:
					p.end(&t)
				default:
					if item.MatchString(line) {
						p.end(&t)
					}
					p.add(at+i, trimmed)
				}
			}
		}
		p.end(&t)
	}
	return t, nil
}

// commentedLines counts the lines that have a comment, alone or behind code. A reader finds
// the meaning of a field in either place.
func commentedLines(files *token.FileSet, f *ast.File) int {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for i := files.Position(c.Pos()).Line; i <= files.Position(c.End()).Line; i++ {
				lines[i] = true
			}
		}
	}
	return len(lines)
}

var (
	item    = regexp.MustCompile(`^ *(?:[-*]|\d+\.) `)
	inline  = regexp.MustCompile("`[^`]*`")
	link    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	html    = regexp.MustCompile(`<!--.*?-->|</?[a-z][^>]*>`)
	divider = regexp.MustCompile(`^[-|: ]+$`)
)

// readMarkdown reads a Markdown file without its code. A piece of code within a sentence is
// replaced by the word "code".
func readMarkdown(src []byte) (text, error) {
	var t text
	var p paragraph
	fence := ""
	for i, line := range strings.Split(string(src), "\n") {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if trimmed == fence {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			p.end(&t)
			fence = trimmed[:3]
			continue
		}
		trimmed = html.ReplaceAllString(link.ReplaceAllString(inline.ReplaceAllString(trimmed, "code"), "$1"), "")
		switch {
		case trimmed == "" || divider.MatchString(trimmed):
			p.end(&t)
		case strings.HasPrefix(trimmed, "#"):
			p.end(&t)
			p.add(i+1, strings.TrimLeft(trimmed, "# "))
			p.end(&t)
		case strings.HasPrefix(trimmed, "|"):
			p.end(&t)
			for _, cell := range strings.Split(strings.Trim(trimmed, "|"), "|") {
				p.add(i+1, strings.TrimSpace(cell))
				p.end(&t)
			}
		default:
			if item.MatchString(line) {
				p.end(&t)
			}
			p.add(i+1, trimmed)
		}
	}
	p.end(&t)
	return t, nil
}

// A paragraph collects lines until its sentences are known.
type paragraph struct {
	line  int
	lines []string
}

func (p *paragraph) add(line int, words string) {
	if len(p.lines) == 0 {
		p.line = line
	}
	p.lines = append(p.lines, words)
}

// end adds the sentences of the paragraph to t and begins another.
func (p *paragraph) end(t *text) {
	for _, s := range split(strings.Join(p.lines, " ")) {
		t.sentences = append(t.sentences, sentence{p.line, s})
	}
	*p = paragraph{}
}

var full = regexp.MustCompile(`[.?!]["')\]]*\s+`)

// split cuts a paragraph at the ends of its sentences. A full stop ends a sentence if a
// lower-case letter does not follow and it is not behind a common abbreviation.
func split(paragraph string) []string {
	var all []string
	from := 0
	for _, at := range full.FindAllStringIndex(paragraph, -1) {
		before, after := paragraph[from:at[1]], paragraph[at[1]:]
		if after != "" && after[0] >= 'a' && after[0] <= 'z' {
			continue
		}
		if b := strings.TrimSpace(before); strings.HasSuffix(b, "e.g.") || strings.HasSuffix(b, "i.e.") || strings.HasSuffix(b, "etc.") {
			continue
		}
		all = append(all, strings.TrimSpace(before))
		from = at[1]
	}
	if last := strings.TrimSpace(paragraph[from:]); last != "" {
		all = append(all, last)
	}
	return all
}

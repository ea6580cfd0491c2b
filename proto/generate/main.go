// Command generate writes the Go code of the .proto files in the folder above,
// beside each of them. With -check it writes nothing, and fails if the code that is
// there differs.
//
// The idea to know: there is nothing to install. The compiler is a Go library, the
// plugins are tools of this module, and go.mod pins all three. That is also why it
// is a module of its own: the gateway depends on none of them.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// root is the folder that imports in .proto files start from.
const root = ".."

var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	check := flag.Bool("check", false, "write nothing; fail if the generated code is not up to date")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	request, err := compile(ctx)
	if err != nil {
		return err
	}
	finish := write
	if check {
		finish = compare
	}
	for _, plugin := range plugins {
		files, err := generate(ctx, plugin, request)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		for _, f := range files {
			if err := finish(filepath.Join(root, f.GetName()), f.GetContent()); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile makes the request that plugins are asked with: all .proto files below
// root.
func compile(ctx context.Context) (*pluginpb.CodeGeneratorRequest, error) {
	names, err := sources()
	if err != nil {
		return nil, err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("paths=source_relative")}
	for _, f := range files {
		// A file that imports another would have to come after it. None does.
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	return request, nil
}

// sources are the .proto files below root, as imports would name them.
func sources() (names []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			names = append(names, path)
		}
		return err
	})
	return names, err
}

// generate runs a plugin: https://protobuf.dev/reference/other/#plugins.
func generate(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response.File, nil
}

func write(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }

func compare(path, content string) error {
	if there, err := os.ReadFile(path); err != nil || string(there) != content {
		return fmt.Errorf("%s is not what the .proto files say; run make generate", path)
	}
	return nil
}

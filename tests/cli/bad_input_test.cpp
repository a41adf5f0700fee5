// What the program says to bad input: the arguments, the exit code, a part of the message. Nothing
// is printed on standard output, and nothing is left behind.

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>

#include "support/images.h"
#include "support/program.h"
#include "support/store_rows.h"
#include "train/export_weights.h"
#include "train/safetensors.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

struct BadInput {
  const char* arguments;
  int code;
  const char* part;  // of the message
};

constexpr BadInput kTraining[] = {
    {"train", 2, "no model given; 'ridgeline models' lists them"},
    {"train mpl", 2, "unknown model 'mpl'; did you mean 'mlp'?; 'ridgeline models' lists all"},
    {"train mlp extra", 2, "unexpected argument 'extra'. See 'ridgeline train --help'"},
    {"train mlp --bacth 3", 2, "unknown option '--bacth'; did you mean '--batch'? See"},
    {"train mlp --batch", 2, "--batch needs a value: N"},
    {"train mlp --batch 0", 2, "--batch 0: must be between 1 and 2147483647"},
    {"train mlp --batch -4", 2, "--batch -4: must be between 1 and 2147483647"},
    {"train mlp --batch many", 2, "--batch = many: expected a number"},
    {"train mlp --batch 1.5", 2, "--batch = 1.5: expected a number"},
    {"train mlp --batch 99999999999999999999", 2, "--batch: 99999999999999999999 is out of range"},
    {"train mlp --batch -99999999999999999999", 2,
     "--batch: -99999999999999999999 is out of range"},
    {"train mlp --batch 2147483648", 2, "--batch 2147483648: must be between 1 and 2147483647"},
    {"train mlp --lr nan", 2, "--lr nan: must be a finite number"},
    {"train mlp --lr inf", 2, "--lr inf: must be a finite number"},
    {"train mlp --lr -inf", 2, "--lr -inf: must be a finite number"},
    {"train mlp --lr -0.1", 2, "--lr -0.1: must not be negative"},
    {"train mlp --lr 1e999", 2, "--lr: 1e999 is out of range"},
    {"train mlp --lr fast", 2, "--lr = fast: expected a number"},
    {"train mlp --momentum 1.5", 2, "--momentum 1.5: must be at least 0 and below 1"},
    {"train mlp --momentum nan", 2, "--momentum nan: must be at least 0 and below 1"},
    {"train mlp --momentum -0.1", 2, "--momentum -0.1: must be at least 0 and below 1"},
    {"train mlp --nesterov --momentum 0", 2, "--nesterov needs --momentum above 0"},
    {"train mlp --optimizer adam --momentum 0.5", 2,
     "--momentum and --nesterov belong to sgd, not to adam"},
    {"train mlp --optimizer adam --nesterov", 2,
     "--momentum and --nesterov belong to sgd, not to adam"},
    {"train mlp --optimizer rmsprop", 2,
     "--optimizer: unknown value 'rmsprop'. Known: sgd, adam, adamw"},
    {"train mlp --weight-decay -1", 2, "--weight-decay -1: must not be negative"},
    {"train mlp --weight-decay nan", 2, "--weight-decay nan: must be a finite number"},
    {"train mlp --weight-decay inf", 2, "--weight-decay inf: must be a finite number"},
    {"train mlp --label-smoothing 2 --data synthetic:1x8x8:4:64", 2,
     "label smoothing 2: must be between 0 and 1"},
    {"train mlp --label-smoothing nan --data synthetic:1x8x8:4:64", 2,
     "label smoothing nan: must be between 0 and 1"},
    {"train mlp --label-smoothing -1 --data synthetic:1x8x8:4:64", 2,
     "label smoothing -1: must be between 0 and 1"},
    {"train mlp --schedule steps", 2, "--schedule: unknown value 'steps'; did you mean 'step'?"},
    {"train mlp --step-size 3", 2, "--step-size and --gamma belong to --schedule step, not to"},
    {"train mlp --gamma 0.5", 2, "--step-size and --gamma belong to --schedule step, not to"},
    {"train mlp --schedule step --gamma nan --data synthetic:1x8x8:4:64", 2,
     "gamma nan: must be above 0"},
    {"train mlp --schedule step --gamma -1 --data synthetic:1x8x8:4:64", 2,
     "gamma -1: must be above 0"},
    {"train mlp --schedule step --step-size 0 --data synthetic:1x8x8:4:64", 2,
     "step size 0: must be at least 1"},
    {"train mlp --schedule cosine --warmup -1 --data synthetic:1x8x8:4:64", 2,
     "a warm-up of -1 epochs in a training of 10: it must be shorter"},
    {"train mlp --warmup 99 --epochs 3 --data synthetic:1x8x8:4:64", 2,
     "a warm-up of 99 epochs in a training of 3: it must be shorter"},
    {"train mlp --epochs 0 --data synthetic:1x8x8:4:64", 2, "epochs 0: must be at least 1"},
    {"train mlp --epochs -1 --data synthetic:1x8x8:4:64", 2, "epochs -1: must be at least 1"},
    {"train mlp --epochs 99999999999999999999", 2,
     "--epochs: 99999999999999999999 is out of range"},
    {"train mlp --epochs two", 2, "--epochs = two: expected a number"},
    {"train mlp --iterations 0 --full-batch --data synthetic:1x8x8:4:64", 2,
     "iterations 0: must be at least 1"},
    {"train mlp --threads -1", 2, "--threads -1: must be between 0 and 4096"},
    {"train mlp --threads 9999999999", 2, "--threads: 9999999999 is out of range"},
    {"train mlp --threads 5000", 2, "--threads 5000: must be between 0 and 4096"},
    {"train mlp --workers 300 --data synthetic:1x8x8:4:64", 2,
     "--workers 300: must be between 0 and 256"},
    {"train mlp --workers -1 --data synthetic:1x8x8:4:64", 2,
     "--workers -1: must be between 0 and 256"},
    {"train mlp --seed -1", 2, "--seed -1: must not be negative"},
    {"train mlp --seed 99999999999999999999", 2, "--seed: 99999999999999999999 is out of range"},
    {"train mlp --limit 0", 2, "--limit 0: must be at least 1"},
    {"train mlp --limit -5", 2, "--limit -5: must be at least 1"},
    {"train mlp --limit 1e3", 2, "--limit = 1e3: expected a number"},
    {"train mlp --validation 64 --data synthetic:1x8x8:4:64", 2,
     "synthetic: cannot hold out 64 of 64 samples; the number must"},
    {"train mlp --validation 0 --data synthetic:1x8x8:4:64", 2,
     "synthetic: cannot hold out a share of 0; it must be between"},
    {"train mlp --validation -1 --data synthetic:1x8x8:4:64", 2,
     "synthetic: cannot hold out a share of -1; it must be between"},
    {"train mlp --validation nan --data synthetic:1x8x8:4:64", 2,
     "--validation 'nan': is not a number"},
    {"train mlp --validation 1.5 --data synthetic:1x8x8:4:64", 2,
     "--validation 1.5: must be a whole number of samples or a"},
    {"train mlp --validation half --data synthetic:1x8x8:4:64", 2,
     "--validation 'half': is not a number"},
    {"train mlp --classes 1", 2, "--classes 1: must be at least 2"},
    {"train mlp --classes 99999999999999999999", 2,
     "--classes: 99999999999999999999 is out of range"},
    {"train mlp --normalize 1,2,3 --data synthetic:1x8x8:4:64", 2,
     "--normalize '1,2,3': 3 numbers, but images of 1 channels need"},
    {"train mlp --normalize 0.5,0 --data synthetic:1x8x8:4:64", 2,
     "--normalize '0.5,0': a deviation must be above 0"},
    {"train mlp --normalize 0.5,nan --data synthetic:1x8x8:4:64", 2,
     "--normalize '0.5,nan': expected unit, mnist, imagenet, or the mean"},
    {"train mlp --normalize nan,0.5 --data synthetic:1x8x8:4:64", 2,
     "--normalize 'nan,0.5': expected unit, mnist, imagenet, or the mean"},
    {"train mlp --normalize imagenet --data synthetic:1x8x8:4:64", 2,
     "--normalize imagenet: is for images of 3 channels, these have"},
    {"train mlp --normalize x --data synthetic:1x8x8:4:64", 2,
     "--normalize 'x': expected unit, mnist, imagenet, or the mean"},
    {"train mlp --image 28by28 --data synthetic:1x8x8:4:64", 2,
     "--image '28by28': expected a size such as 224, 224x224 or"},
    {"train mlp --image 0x5 --data synthetic:1x8x8:4:64", 2,
     "--image '0x5': expected a size such as 224, 224x224 or"},
    {"train mlp --image 99999999999x2 --data synthetic:1x8x8:4:64", 2,
     "--image '99999999999x2': expected a size such as 224, 224x224"},
    {"train mlp --image 1x2x3x4 --data synthetic:1x8x8:4:64", 2,
     "--image 1x2x3x4: expected HxW, such as 224x224; the data has"},
    {"train mlp --image -5x5 --data synthetic:1x8x8:4:64", 2,
     "--image '-5x5': expected a size such as 224, 224x224 or"},
    {"train mlp --augment rotate --data synthetic:1x8x8:4:64", 2,
     "--augment: unknown value 'rotate'. Known: none, flip, crop"},
    {"train mlp --last-batch pad --data synthetic:1x8x8:4:64", 2,
     "--last-batch: unknown value 'pad'. Known: smaller, drop,"},
    {"train mlp --eval-every 0", 2, "--eval-every 0: must be at least 1"},
    {"train mlp --eval-every 99999999999999999999", 2,
     "--eval-every: 99999999999999999999 is out of range"},
    {"train mlp --target-accuracy 101%", 2,
     "--target-accuracy 101%: must be between 0 and 1, or between"},
    {"train mlp --target-accuracy 0", 2,
     "--target-accuracy 0: must be between 0 and 1, or between 0%"},
    {"train mlp --target-accuracy nan", 2, "--target-accuracy 'nan': is not a number"},
    {"train mlp --target-accuracy high", 2, "--target-accuracy 'high': is not a number"},
    {"train mlp --precision fp16", 2, "fp32 and bf16 only"},
    {"train mlp --precision fp8", 2,
     "--precision: unknown value 'fp8'; did you mean 'fp32'? Known:"},
    {"train mlp --loss-scale 8", 2, "--loss-scale belongs to --precision fp16"},
    {"train mlp --device gpu", 2, "unknown device 'gpu'; known: cpu, and cuda:0, cuda:1 and so"},
    {"train mlp --device cuda:x", 2, "unknown device 'cuda:x'; known: cpu, and cuda:0, cuda:1 and"},
    {"train mlp --backend onedn", 2, "unknown backend 'onedn'; did you mean 'onednn'?"},
    {"train mlp --no-pass fusoin --data synthetic:1x8x8:4:64", 2,
     "unknown pass 'fusoin'; did you mean 'fusion'?; known: fusion,"},
    {"train mlp --init xavier", 2, "--init: unknown value 'xavier'. Known: pytorch, he"},
    {"train mlp --set hidden", 2, "--set hidden: expected NAME=VALUE, for example --set hidden=64"},
    {"train mlp --set =3", 2, "--set =3: expected NAME=VALUE, for example --set hidden=64"},
    {"train mlp --set hidden=0 --data synthetic:1x8x8:4:64", 2,
     "mlp: a hidden layer needs at least one unit"},
    {"train mlp --set hidden=x --data synthetic:1x8x8:4:64", 2,
     "mlp: setting hidden needs whole numbers, not 'x'"},
    {"train mlp --set hidden=99999999999999999999 --data synthetic:1x8x8:4:64", 2,
     "mlp: setting hidden needs whole numbers, not"},
    {"train mlp --set hidden=1e999 --data synthetic:1x8x8:4:64", 2,
     "mlp: setting hidden needs whole numbers, not '1e999'"},
    {"train mlp --set hiden=3", 2, "model mlp has no option 'hiden'; did you mean 'hidden'?; it"},
    {"train mlp --set activation=gelu --data synthetic:1x8x8:4:64", 2,
     "mlp: unknown activation 'gelu'; did you mean 'relu'?; known:"},
    {"train mnist_cnn --set kernel=0 --data synthetic:1x8x8:4:64", 2,
     "mnist_cnn: options kernel and hidden must be at least 1"},
    {"train mnist_cnn --set kernel=99 --data synthetic:1x8x8:4:64", 2,
     "conv1: conv2d: kernel 99x99 with dilation 1x1 is larger than"},
    {"train mnist_cnn --backend reference --data synthetic:1x3x3:4:64", 2,
     "pool1: pool: kernel 2 with dilation 1 is larger than the"},
    {"train mlp --freeze nothing.* --data synthetic:1x8x8:4:64", 2,
     "freeze 'nothing.*': no parameter of mlp matches; names"},
    {"train mlp --freeze * --data synthetic:1x8x8:4:64", 2,
     "all parameters are frozen: nothing is left to train"},
    {"train mlp --data fashon-mnist", 2,
     "unknown dataset 'fashon-mnist'; did you mean 'fashion-mnist'?"},
    {"train mlp --data nowhere/", 2, "nowhere/: no such file or folder; expected a folder with"},
    {"train mlp --data nowhere.csv", 2,
     "nowhere.csv: no such file or folder; expected a folder with"},
    {"train mlp --data nowhere.pack", 2,
     "nowhere.pack: no such file or folder; expected a folder with"},
    {"train mlp --data synthetic:1x8x8:4:0", 2,
     "dataset 'synthetic:1x8x8:4:0': '0' is not a number of samples;"},
    {"train mlp --data synthetic:1x8x8:0:4", 2,
     "dataset 'synthetic:1x8x8:0:4': '0' is not a number of classes;"},
    {"train mlp --data synthetic:1x8:4", 2, "dataset 'synthetic:1x8:4': expected"},
    {"train mlp --data synthetic:1x8x8:4:64:9", 2, "dataset 'synthetic:1x8x8:4:64:9': expected"},
    {"train mlp --data synthetic:1x8x8:4:99999999999999999999", 2,
     "dataset 'synthetic:1x8x8:4:99999999999999999999':"},
    {"train mlp --data empty", 2,
     "empty: contains no data of a known kind: it is empty; expected a"},
    {"train mlp --data one", 2, "one: contains only one class, 'only'; a folder for each of two"},
    {"train mlp --data above", 2, "did you mean above/pets?"},
    {"train mlp --data all", 2, "all: is not a folder of classes: 'tiny' in it has a 'train'"},
    {"train mlp --data hole", 2, "hole/c: empty class: contains no .jpg, .jpeg or .png file;"},
    {"train mlp --data webp", 2, "2 image files are passed over"},
    {"train mlp --data loop/x", 2, "loop/x: cannot be read: Too many levels of symbolic links"},
    {"train mlp --data broken.csv", 2, "broken.csv:2: column 2 (pixel0): 999 is out of range;"},
    {"train mlp --data text.txt", 2,
     "text.txt: is neither a folder with data, nor a .csv, .csv.gz"},
    {"train mlp --data tiny", 2, "tiny/val/val_annotations.txt line 1: label: names 'v.JPEG',"},
    {"train mlp --data unread --image 8x8", 2,
     "unread: not one of the 2 images can be decoded; the first"},
    {"train mlp --data odd.pack", 2,
     "odd.pack: a pack of version 0; this program reads version 1:"},
    {"train mlp --csv none/x.csv --data synthetic:1x8x8:4:64", 2,
     "none/x.csv: cannot be written: No such file or directory"},
    {"train mlp --csv empty --data synthetic:1x8x8:4:64", 2,
     "empty: is a folder, not a file to write"},
    {"train mlp --store none/x.db --data synthetic:1x8x8:4:64", 2,
     "none/x.db: cannot be written: No such file or directory"},
    {"train mlp --store text.txt --data synthetic:1x8x8:4:64", 2,
     "text.txt: is not a store (not an SQLite database)"},
    {"train mlp --store empty --data synthetic:1x8x8:4:64", 2, "empty: is a folder, not a store"},
    {"train mlp --weights nowhere.pth --data synthetic:1x8x8:4:64", 2,
     "nowhere.pth: cannot be opened: No such file or directory"},
    {"train mlp --weights text.txt --data synthetic:1x8x8:4:64", 2,
     "text.txt: is not a weight file; expected safetensors, or a file"},
    {"train mlp --weights photos --data synthetic:1x8x8:4:64", 2,
     "photos: is a folder; a file was expected"},
    {"train mlp --resume --data synthetic:1x8x8:4:64", 2, "--resume needs --checkpoint DIR"},
    {"train mlp --checkpoint empty --resume --data synthetic:1x8x8:4:64", 2,
     "empty: has no checkpoint to resume; leave out --resume to"},
    {"train mlp --checkpoint text.txt --data synthetic:1x8x8:4:64", 2,
     "text.txt: cannot be made: Not a directory"},
    {"train mlp --checkpoint run --checkpoint-every 0 --data synthetic:1x8x8:4:64", 2,
     "--checkpoint-every 0: must be at least 1"},
    {"train mlp --checkpoint-every 3 --data synthetic:1x8x8:4:64", 2,
     "--checkpoint-every needs --checkpoint DIR"},
    {"train mlp --telemetry -1 --data synthetic:1x8x8:4:64", 2,
     "--telemetry -1: must be between 0 (off) and 1000 readings"},
    {"train mlp --telemetry nan --data synthetic:1x8x8:4:64", 2,
     "--telemetry nan: must be between 0 (off) and 1000 readings"},
    {"train mlp --telemetry 1e9 --data synthetic:1x8x8:4:64", 2,
     "--telemetry 1000000000: must be between 0 (off) and 1000"},
    {"train mlp --tensorboard-every 0 --tensorboard tb --data synthetic:1x8x8:4:64", 2,
     "--tensorboard-every 0: must be at least 1"},
    {"train mlp --lr 1e30 --epochs 1 --data synthetic:1x8x8:4:240 --store none", 1,
     "the loss is nan at step 2"},
    {"train mlp --device cuda:99", 2, "device 'cuda:99'"},
};

constexpr BadInput kOthers[] = {
    {"trian mlp", 2, "unknown command 'trian'; did you mean 'train'? Known: train,"},
    {"--nonsense", 2, "unknown option '--nonsense'. See 'ridgeline --help'"},
    {"-x", 2, "unknown option '-x'. See 'ridgeline --help'"},
    {"eval", 2, "no model given; 'ridgeline models' lists them"},
    {"eval mlp --part val --data synthetic:1x28x28:10:24", 2,
     "--part: unknown value 'val'. Known: train, test"},
    {"eval mlp --limit 0", 2, "--limit 0: must be at least 1"},
    {"eval mlp --workers 999", 2, "--workers 999: must be between 0 and 256"},
    {"eval mlp --weights w.safetensors --checkpoint run", 2,
     "--weights and --checkpoint cannot be combined"},
    {"eval mlp --best", 2, "--best needs --checkpoint DIR"},
    {"eval --checkpoint nowhere", 2, "nowhere: has no checkpoint"},
    {"eval --checkpoint empty", 2, "empty: has no checkpoint"},
    {"eval mlp --weights w.safetensors --data synthetic:1x28x28:7:24", 2,
     "synthetic: has 7 classes, but the network has 2"},
    {"eval mlp --weights nan.safetensors --data synthetic:1x28x28:2:24", 2,
     "nan.safetensors: 'fc2.bias' has 1 of 2 values that are not"},
    {"eval mlp --data nowhere/", 2, "nowhere/: no such file or folder; expected a folder with"},
    {"infer x.jpg", 2, "no model given; 'ridgeline models' lists them"},
    {"infer x.jpg --model mlp", 2, "x.jpg: cannot be opened"},
    {"infer text.txt --model mlp", 2, "text.txt: is neither a JPEG nor a PNG"},
    {"infer photos/val/cat/0.jpg --model mlp --top 0", 2, "--top 0: must be at least 1"},
    {"infer photos/val/cat/0.jpg --model mlp --weights nan.safetensors", 2,
     "nan.safetensors: 'fc2.bias' has 1 of 2 values that are not"},
    {"infer photos/val/cat/0.jpg --model mlp --class-names nowhere", 2, "nowhere: cannot be read"},
    {"infer photos/val/cat/0.jpg --model mlp --class-names text.txt", 2,
     "text.txt: has 1 line(s), but the network has 10 classes"},
    {"infer photos/val/cat/0.jpg --model mlp --image 0", 2,
     "--image '0': expected a size such as 224, 224x224 or 3x224x224"},
    {"infer text.npy --model mlp", 2, "text.npy: is not a .npy file"},
    {"infer none.npy --model mlp", 2, "none.npy: cannot be opened: No such file or directory"},
    {"infer small.npy --model mlp", 2, "small.npy: has shape 1x2x2; the network takes 1x28x28, or"},
    {"infer small.npy photos/val/cat/0.jpg --model mlp", 2,
     "small.npy: has shape 1x2x2; the network takes 1x28x28, or"},
    {"infer whole.npy --model mlp", 2, "whole.npy: contains '<i8'; expected float32 or float64,"},
    {"export", 2, "no output file given; use --out FILE.safetensors"},
    {"export mlp --out none/w.safetensors", 2,
     "none/w.safetensors: cannot be written: No such file or"},
    {"export mlp --out empty", 2, "empty: is a folder, not a file to write"},
    {"export mlp --classes 1 --out x.safetensors", 2, "--classes 1: must be at least 2"},
    {"export resnet18 --weights w.safetensors --out x.safetensors", 2, "and 96 more"},
    {"bench mlp --batch 0", 2, "--batch 0: must be a whole number from 1 to 2147483647, or"},
    {"bench mlp --batch x", 2, "--batch x: must be a whole number from 1 to 2147483647, or"},
    {"bench mlp --batch 64,", 2, "--batch '64,': an entry between the commas is empty"},
    {"bench mlp --batch 99999999999999999999", 2,
     "--batch 99999999999999999999: must be a whole number from 1"},
    {"bench mlp --backend reference,natve", 2,
     "unknown backend 'natve'; did you mean 'native'? Known:"},
    {"bench mlp --backend torch-gpux", 2,
     "unknown peer 'torch-gpux'; did you mean 'torch-cpu'?; known:"},
    {"bench mlp --image 28by28", 2, "--image '28by28': expected a size such as 224, 224x224 or"},
    {"bench mlp --iterations 0", 2, "--iterations 0: must be at least 1"},
    {"bench mlp --iterations 99999999999999999999", 2,
     "--iterations: 99999999999999999999 is out of range"},
    {"bench mlp --warmup -1", 2, "--warmup -1: must not be negative"},
    {"bench mlp --precision-target 0", 2,
     "--precision-target 0: must be above 0 and below 100 percent"},
    {"bench mlp --precision-target nan", 2,
     "--precision-target nan: must be above 0 and below 100 percent"},
    {"bench mlp --max-seconds 0", 2, "--max-seconds 0: must be above 0"},
    {"bench mlp --max-seconds nan", 2, "--max-seconds nan: must be above 0"},
    {"bench mlp --max-seconds -1", 2, "--max-seconds -1: must be above 0"},
    {"bench mlp --processes 0", 2, "--processes 0: must be between 1 and 1000"},
    {"bench mlp --telemetry nan", 2, "--telemetry nan: must be between 0 (off) and 1000 readings"},
    {"bench mlp --peer-timeout 0", 2, "--peer-timeout 0: must be above 0"},
    {"bench mlp --peer-timeout nan", 2, "--peer-timeout nan: must be above 0"},
    {"bench mlp --samples 0 --loader", 2,
     "--samples 0: must be a whole number from 1 to 2147483647"},
    {"bench mlp --optimizer sdg", 2,
     "--optimizer: unknown value 'sdg'; did you mean 'sgd'? Known:"},
    {"bench mlp --precision fp32,fp9", 2,
     "--precision: unknown value 'fp9'; did you mean 'fp32'? Known:"},
    {"bench mlp --data nowhere/", 2, "nowhere/: no such file or folder; expected a folder with"},
    {"bench mlp --data photos --batch 999", 2,
     "batch 999 is larger than the data; it must be between 1 and 4"},
    {"bench mlp --tensorboard text.txt --iterations 1", 2,
     "text.txt: event files cannot be written there: Not a"},
    {"bench mlp --label-smoothing 7", 2,
     "loss: softmax_cross_entropy: label smoothing must be between"},
    {"profile mlp --by colour", 2, "--by: unknown value 'colour'. Known: op, layer, phase,"},
    {"profile mlp --steps 0", 2, "--steps 0: must be between 1 and 10000"},
    {"profile mlp --top 0", 2, "--top 0: must be at least 1"},
    {"profile mlp --against 99 --store empty.db", 2,
     "empty.db: the store does not exist; bench, train and study"},
    {"profile mlp --trace none/x.json", 2,
     "none/x.json: cannot be written: No such file or directory"},
    {"profile mlp --batch 1,2", 2, "profile takes only one model, backend, device, batch,"},
    {"compare", 2, "compare needs two runs, A and B, or --all; 0 given"},
    {"compare 1", 2, "compare needs two runs, A and B, or --all; 1 given"},
    {"compare 1 2 --store nowhere.db", 2,
     "nowhere.db: the store does not exist; bench, train and study"},
    {"compare 1 2 --store text.txt", 2, "text.txt: is not a store (not an SQLite database)"},
    {"compare 1 2 --store s.db", 2, "s.db: there is no run '2'. A run is named by its number, the"},
    {"compare 1 2 --margin nan --store s.db", 2,
     "--margin nan: must be above 0 and below 1; 0.02 is 2%"},
    {"compare 1 2 --margin -1 --store s.db", 2,
     "--margin -1: must be above 0 and below 1; 0.02 is 2%"},
    {"compare 1 2 --alpha 0 --store s.db", 2,
     "--alpha 0: must be above 0 and below 0.5; 0.01 gives a 99%"},
    {"compare 1 2 --alpha nan --store s.db", 2,
     "--alpha nan: must be above 0 and below 0.5; 0.01 gives a 99%"},
    {"compare 1 2 --by step --store s.db", 2, "--by requires --ops"},
    {"compare --all nothing --store s.db", 2,
     "no call 'nothing' in the store; 'last' means the newest"},
    {"verify mlp --tolerance 0", 2, "--tolerance 0: must be above 0"},
    {"verify mlp --tolerance nan", 2, "--tolerance nan: must be above 0"},
    {"verify mlp --against refrence", 2, "unknown backend 'refrence'; did you mean 'reference'?"},
    {"verify mlp --steps 0", 2, "--steps 0: must be at least 1"},
    {"verify mlp --csv none/x.csv", 2, "none/x.csv: cannot be written: No such file or directory"},
    {"describe", 2, "no model given; 'ridgeline models' lists them"},
    {"describe mlp --batch 0", 2, "--batch '0': expected numbers of at least 1, such as"},
    {"describe mlp --batch 1,,2", 2, "--batch '1,,2': expected numbers of at least 1, such"},
    {"describe mlp --memory lots", 2, "--memory 'lots': expected a size such as 8GiB, 500MB or"},
    {"describe mlp --memory -5GiB", 2, "--memory '-5GiB': expected a size such as 8GiB, 500MB or"},
    {"describe mlp --memory nan", 2, "--memory 'nan': expected a size such as 8GiB, 500MB or"},
    {"describe mnist_cnn --set filters=1000000000,1000000000", 2,
     "conv2.weight: a tensor of 1000000000x1000000000x3x3 is larger"},
    {"describe mlp --set hidden=9000000000000000000", 2,
     "fc1.weight: a tensor of 9000000000000000000x784 is larger"},
    {"describe text.txt", 2, "text.txt: is not a weight file; expected safetensors, or a file"},
    {"describe empty", 2, "unknown model 'empty'; 'ridgeline models' lists all"},
    {"describe mlp --image 65537x65537", 2,
     "--image '65537x65537': expected a size such as 224, 224x224"},
    {"describe resnet18 --image 8x8", 2,
     "layer2.0.bn1: bn_statistics: src 1x128x1x1 has one value per"},
    {"models extra", 2, "unexpected argument 'extra'. See 'ridgeline models --help'"},
    {"backends extra", 2, "unexpected argument 'extra'. See 'ridgeline backends --help'"},
    {"env --device cpu", 2, "--device requires --measure"},
    {"env --measure --sensors", 2, "--measure cannot be combined with --sensors"},
    {"env --measure --device gpu", 2,
     "unknown device 'gpu'; known: cpu, and cuda:0, cuda:1 and so"},
    {"roofline --store nowhere.db", 2,
     "nowhere.db: the store does not exist; bench, train and study"},
    {"roofline 99 --store s.db", 2,
     "s.db: there is no run '99'. A run is named by its number, the"},
    {"roofline --by colour --store s.db", 2, "--by colour: must be network, layer, op or step"},
    {"roofline --top 0 --store s.db", 2, "--top 0: must be at least 1"},
    {"data nonsense", 2, "unexpected argument 'nonsense'. See 'ridgeline data --help'"},
    {"data get", 2, "NAME is required"},
    {"data get nothing", 2, "unknown dataset 'nothing'. Downloadable: mnist,"},
    {"data check", 2, "PATH is required"},
    {"data check nowhere", 2, "nowhere: no such folder or pack"},
    {"data check text.txt", 2, "text.txt: is neither a folder with images nor a pack"},
    {"data check all", 2, "all: is not a folder of classes: 'tiny' in it has a 'train'"},
    {"data check loop/x", 2, "loop/x: Too many levels of symbolic links"},
    {"data pack photos", 2, "OUT is required"},
    {"data pack nowhere out.pack", 2, "unknown dataset 'nowhere'. Known are fashion-mnist, mnist,"},
    {"data pack photos none/out.pack", 2,
     "none/out.pack: cannot be written: No such file or directory"},
    {"data pack photos out.pack --size 0x0", 2,
     "--size '0x0': expected a size such as 224, 224x224 or"},
    {"data pack photos out.pack --size big", 2,
     "--size 'big': expected a size such as 224, 224x224 or"},
    {"data pack photos out.pack --jpeg --size 8x8", 2,
     "--jpeg does not decode images and cannot be combined with"},
    {"data pack photos out.pack --jpeg --skip-broken", 2,
     "--jpeg does not decode images and cannot be combined with"},
    {"data pack unread out.pack --skip-broken --size 8x8", 2, "no test image is left for the pack"},
    {"data pack synthetic:1x8x8:4:8 out.pack --jpeg", 2,
     "synthetic: there are no image files to copy: the data is in"},
    {"data pack photos empty", 2, "empty: is a folder, not a file to write"},
    {"store nonsense", 2, "unexpected argument 'nonsense'. See 'ridgeline store --help'"},
    {"store list --store nowhere.db", 2,
     "nowhere.db: the store does not exist; bench, train and study"},
    {"store list --store text.txt", 2, "text.txt: is not a store (not an SQLite database)"},
    {"store list --store empty", 2, "empty: is a folder, not a store"},
    {"store list --store loop/s.db", 2,
     "loop/s.db: cannot be read: Too many levels of symbolic links"},
    {"store list --limit 0 --store s.db", 2, "--limit 0: must be at least 1"},
    {"store list --where nonsense --store s.db", 2,
     "'nonsense' in 'nonsense': must be NAME=VALUE, for example"},
    {"store list --where colour=red --store s.db", 2, "runs have no field of that name"},
    {"store show --store s.db", 2, "RUN is required"},
    {"store show 99 --store s.db", 2,
     "s.db: there is no run '99'. A run is named by its number, the"},
    {"store show label=none --store s.db", 2, "no run in the store matches 'label=none'"},
    {"store import --store new.db", 2, "FILE is required"},
    {"store import x.csv --store new.db", 2,
     "x.csv: cannot be imported: it is neither a store (SQLite,"},
    {"store import text.txt --store new.db", 2,
     "text.txt: cannot be imported: it is neither a store (SQLite,"},
    {"store import nowhere.db --store new.db", 2, "nowhere.db: there is no such file"},
    {"store import empty --store new.db", 2, "empty: is a folder, not a file to import"},
    {"store import other.json --store new.db", 2,
     "other.json: is JSON, but has no results to import:"},
    {"store import broken.json --store new.db", 2,
     "broken.json: is not JSON: [json.exception.parse_error.101]"},
    {"store export --store s.db --csv none/x.csv", 2,
     "none/x.csv: cannot be written: No such file or directory"},
    {"store delete 99 --store s.db", 2,
     "s.db: there is no run '99'. A run is named by its number, the"},
    {"store delete --store s.db", 2, "RUN is required"},
    {"study nowhere", 2, "there is neither a study nor a file 'nowhere'. Built in:"},
    {"study nowhere.toml", 2, "there is neither a study nor a file 'nowhere.toml'. Built in:"},
    {"study open.toml", 2, "open.toml, line 1: a text has no closing quote"},
    {"study wrong.toml", 2, "wrong.toml, line 1: study: 'name' must be a text"},
    {"study text.txt", 2, "text.txt, line 1: Error while parsing key-value pair:"},
    {"study empty", 2, "there is neither a study nor a file 'empty'. Built in: quick,"},
    {"study backends --scale huge", 2, "scale 'huge': must be small or full"},
    {"study backends --only nothing", 2,
     "--only nothing: study backends has no such part at scale"},
    {"study backends --threads -1", 2, "--threads -1: must not be negative"},
    {"study backends --data nowhere", 2, "--data nowhere: 'nowhere' does not exist"},
    {"report --store nowhere.db --out r1", 2,
     "nowhere.db: the store does not exist; bench, train and study"},
    {"report --store text.txt --out r2", 2, "text.txt: is not a store (not an SQLite database)"},
    {"report --store s.db --format docx --out r3", 2,
     "--format docx: there are html, markdown, latex, csv, svg,"},
    {"report --store s.db --out text.txt", 2, "text.txt: is a file, not a folder"},
    {"report --store s.db --study nothing --out r4", 2, "the store has no study 'nothing'"},
    {"verify mlp --tolerance inf", 2, "--tolerance inf: must be above 0 and finite"},
    {"eval mlp --normalize 0 --data synthetic:1x28x28:10:24", 2, "--normalize '0': 1 numbers"},
};

class BadInputs : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_images();
    write_files();
    write_weights();
    Store store(folder_ / "s.db");
    (void)write_example(store);
  }

  // Some at a time: most of their time they wait for the disk.
  template <std::size_t count>
  void expect_refused(const BadInput (&inputs)[count]) const {
    constexpr std::size_t kAtOnce = 4;
    const std::set<std::string> before = files();
    for (std::size_t first = 0; first < count; first += kAtOnce) {
      std::vector<std::unique_ptr<Child>> children;
      for (std::size_t i = first; i < std::min(first + kAtOnce, count); ++i) {
        children.push_back(std::make_unique<Child>(inputs[i].arguments, folder_));
      }
      for (std::size_t i = 0; i < children.size(); ++i) {
        const BadInput& input = inputs[first + i];
        const Outcome outcome = children[i]->finish();
        EXPECT_EQ(outcome.code, input.code) << input.arguments << '\n' << outcome.err;
        EXPECT_NE(outcome.err.find(input.part), std::string::npos)
            << input.arguments << '\n'
            << outcome.err << "lacks: " << input.part;
        EXPECT_TRUE(input.code != 2 || outcome.out.empty()) << input.arguments;
      }
    }
    EXPECT_EQ(files(), before) << "something was left behind";
  }

 private:
  void text(const std::string& name, const std::string& contents) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }

  void write_images() const {
    for (const char* part : {"train", "val"}) {
      write_class_folders(folder_ / "photos" / part, {"cat", "dog"}, 2, part[0]);
    }
    write_class_folders(folder_ / "one", {"only"}, 1);
    for (const char* root :
         {"above/pets", "all/tiny/train", "hole", "tiny/train", "unread/train"}) {
      write_class_folders(folder_ / root, {"a", "b"}, 1);
    }
    for (const char* name : {"a", "b"}) {
      text(fmt::format("webp/{}/0.webp", name), "RIFF");
      text(fmt::format("unread/val/{}/0.jpg", name), "x");
    }
    for (const char* name : {"hole/c", "empty", "tiny/val/images"}) {
      fs::create_directories(folder_ / name);
    }
    text("tiny/val/val_annotations.txt", "v.JPEG\ta\n");
    fs::create_symlink("loop", folder_ / "loop");
  }

  void write_files() const {
    text("text.txt", "hello\n");
    text("text.npy", "hello hello hello");
    text("x.csv", "a,b\n1,2\n");
    text("broken.csv", "label,p0\n1,999\n");
    text("odd.pack", "RDGLPACK" + std::string(200, '\0'));
    text("other.json", "{\"a\": 1}");
    text("broken.json", "{ nothing");
    text("open.toml", "name = \"open\n");
    text("wrong.toml", "name = 1\n");
    npy("small.npy", "'<f4'", "(1, 2, 2)", 16);
    npy("whole.npy", "'<i8'", "(1, 28, 28)", 8 * 28 * 28);
  }

  void npy(const std::string& name, const std::string& type, const std::string& shape,
           std::size_t bytes) const {
    const std::string header =
        "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
    text(name, std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' +
                   header + std::string(bytes, '\0'));
  }

  // A network of two classes, and the same with a NaN in its last bytes.
  void write_weights() const {
    StepSpec step;
    step.batch = 1;
    step.model = default_config("mlp");
    step.model.classes = 2;
    const StateDict dict = state_dict(evaluation_graph(step).parameters, "mlp", nullptr, 0, 0);
    write_safetensors(folder_ / "w.safetensors", dict.tensors, {});
    fs::copy(folder_ / "w.safetensors", folder_ / "nan.safetensors");
    std::fstream file(folder_ / "nan.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-4, std::ios::end);
    file.write("\x00\x00\xc0\x7f", 4);
  }

  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      names.insert(entry.path().string());
    }
    return names;
  }
};

static_assert(std::size(kTraining) + std::size(kOthers) >= 200);

TEST_F(BadInputs, OfTrainingAreRefused) { expect_refused(kTraining); }

TEST_F(BadInputs, OfOtherCommandsAreRefused) { expect_refused(kOthers); }

}  // namespace
}  // namespace ridgeline

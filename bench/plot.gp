# SPDX-License-Identifier: Apache-2.0
# The plot of bench/plot, which sets data (its CSV), dir (with "busy": SECOND RANK SHARE, and "labels", which gnuplot loads), output,
# kind ('svg' or 'png'), heading, ranks, seconds (of the run) and width (of a bin).
height = 420 + (ranks < 8 ? 30 * ranks : ranks < 100 ? 240 : 480)
if (kind eq "svg") { set terminal svg size 1000,height font "sans,12" background "white" } else { set terminal pngcairo size 1000,height font "sans,10" }
set output output
set datafile separator ","
set multiplot title heading noenhanced
split = 1 - 330.0 / height
set lmargin at screen 0.09
set rmargin at screen 0.84
set xrange [0:seconds]
set border 3
set tics nomirror

set tmargin at screen 1 - 40.0 / height
set bmargin at screen split
set yrange [0:*]
set grid y
set ylabel "tokens a second"
set key outside right top noenhanced
set style fill solid 0.6 noborder
plot data skip 1 using 1:2:(0) with filledcurves lc rgb "#6baed6" title "prompts", \
     data skip 1 using 1:($2 + $3):2 with filledcurves lc rgb "#ff7f0e" title "generated"

set datafile separator whitespace
unset key
unset grid
set tmargin at screen split - 30.0 / height
set bmargin at screen 60.0 / height
set xlabel "seconds"
set ylabel "rank"
set yrange [ranks - 0.5:-0.5]
set ytics 0, ranks < 12 ? 1 : ranks < 50 ? 4 : ranks < 200 ? 16 : 64
set cbrange [0:100]
set palette defined (0 "#f7fbff", 50 "#6baed6", 100 "#08306b")
set cblabel "busy, %"
set colorbox user origin 0.93, 60.0 / height size 0.015, split - 90.0 / height
if (ranks <= 40) { load dir . "/labels" }
plot dir . "/busy" using 1:2:(0.51 * width):(0.47):(100 * $3) with boxxyerror fs solid noborder lc palette
unset multiplot

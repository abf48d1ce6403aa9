# SPDX-License-Identifier: Apache-2.0
# A plot of bench/scaling: gnuplot -e "data='FILE'; output='FILE'; kind='svg' or 'png'; series='NAME'; machine='NAME'" scaling.gp
# data has lines "X RATE LEAST MOST PREDICTED IDEAL"; - where there is no ideal.
if (kind eq "svg") { set terminal svg size 800,520 font "sans,12" background "white" } else { set terminal pngcairo size 800,520 font "sans,10" }
set output output
title(s) = s eq "strong" ? "Strong scaling" : s eq "weak" ? "Weak scaling" : s eq "replicas" ? "Replicas of one set of ranks" : "Sequences at a time"
label(s) = s eq "replicas" ? "replicas (pipelines side by side)" : s eq "batch" ? "sequences at a time" : "ranks"
set title title(series) . " (" . machine . ")" noenhanced
set datafile missing "-"
set xlabel label(series)
set ylabel "tokens a second"
set logscale x 2
stats data using 1 nooutput
set xrange [STATS_min / 1.2:STATS_max * 1.2]
set xtics nomirror
set ytics nomirror
set border 3
set grid y
set key below noenhanced # over no point, wherever they lie
set style line 1 lw 2 pt 7 lc rgb "#1f77b4"
set style line 2 lw 2 pt 4 lc rgb "#ff7f0e"
set macros
found = 'data using 1:5 with linespoints ls 2 title "predicted by cake-mpi plan", data using 1:2:3:4 with yerrorbars ls 1 title "measured (median; least, most)", data using 1:2 with lines ls 1 notitle'
if (series eq "strong" || series eq "weak") {
    set logscale y 2
    plot data using 1:6 with lines lw 2 dt 2 lc rgb "#7f7f7f" title "ideal", @found
} else {
    set yrange [0:*]
    plot @found
}
